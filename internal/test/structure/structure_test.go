package structure

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// internal is the folder of the project's packages.
const internal = "../.."

// downwards are the packages whose files call downwards only.
func downwards() []string {
	return []string{
		"assemble", "cli", "cli/agentcmd", "cli/command", "cli/runcmd", "clients", "clients/accounts", "connections", "connscan", "diagnosis", "diagnosis/advice", "diagnosis/causes",
		"diagnosis/findings", "diagnosis/reading", "diagnosis/symptoms", "diagnosis/words", "discovery", "discovery/bounded", "discovery/examine", "discovery/match",
		"discovery/springboot", "discovery/springboot/classpath", "discovery/springboot/configdata", "discovery/springboot/launch",
		"discovery/springboot/properties", "evidence", "evidence/reader", "facts", "handshake", "handshake/packet", "handshake/room", "handshake/tap",
		"hostproc", "hostproc/cgroup", "hostproc/hangs", "hostproc/hsperf", "hostproc/memory", "hostproc/netstat", "hostproc/openfiles", "hostproc/procfile",
		"hostproc/threads", "incident", "incident/recording", "incident/story", "losses", "model", "namespace", "owner",
		"render", "render/planreport", "render/runreport", "render/term", "render/watch", "schedule", "sockdiag", "watchlist",
	}
}

// TestFilesCallDownwards: a circle of files is mended by moving a function to
// where what it needs stands below it.
func TestFilesCallDownwards(t *testing.T) {
	for _, name := range downwards() {
		t.Run(name, func(t *testing.T) {
			calls, err := Calls(filepath.Join(internal, name))
			require.NoError(t, err)
			require.Empty(t, Circles(calls), "files that call one another: %v", Upwards(calls))
		})
	}
	calls, err := Calls(filepath.Join(internal, "schedule"))
	require.NoError(t, err)
	require.Greater(t, len(calls), 50, "the calls of a large package are seen")
}

// sources are the product's files below a folder, without tests and rigs.
func sources(t *testing.T, top string) (paths []string) {
	require.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || filepath.Dir(path) == filepath.Clean(internal) && d.Name() == "test"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			paths = append(paths, path)
		}
		return nil
	}))
	return paths
}

// TestPackagesStaySmall: a package can be read in one sitting.
func TestPackagesStaySmall(t *testing.T) {
	sizes := make(map[string][2]int)
	for _, top := range []string{internal, filepath.Join(internal, "..", "cmd")} {
		for _, path := range sources(t, top) {
			body, err := os.ReadFile(path)
			require.NoError(t, err)
			name, _ := filepath.Rel(internal, filepath.Dir(path))
			size := sizes[name]
			sizes[name] = [2]int{size[0] + strings.Count(string(body), "\n"), size[1] + 1}
		}
	}
	require.Greater(t, len(sizes), 30)
	for name, size := range sizes {
		lines, files := 2500, 25
		if name == "diagnosis/causes" { // which has a file for each
			files = 32
		}
		require.LessOrEqual(t, size[0], lines, "lines of %s: split it", name)
		require.LessOrEqual(t, size[1], files, "files of %s", name)
	}
}

// TestTheMap: each package has its row in CONTRIBUTING.md, or its name in that of the folder above it.
func TestTheMap(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	rows := make(map[string]string)
	for _, m := range regexp.MustCompile("(?m)^\\| `((?:cmd|internal)/[^`]*)` \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		require.DirExists(t, filepath.Join(root, m[1]))
		rows[m[1]] = m[2]
	}
	require.Greater(t, len(rows), 60)
	for _, top := range []string{"cmd", "internal"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(root, path)
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case !d.IsDir() || !hasSources(path):
				return nil
			}
			in := name
			for rows[in] == "" && in != "." {
				in = filepath.Dir(in)
			}
			within, _ := filepath.Rel(in, name)
			named := strings.Contains(rows[in], "`"+within+"`") || strings.Contains(rows[in], "`"+d.Name()+"`")
			require.True(t, in == name || named, "the map has no %s", name)
			return nil
		}))
	}
}

// hasSources reports whether a folder is a package.
func hasSources(folder string) bool {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	return err == nil && len(files) > 0
}

// TestTopLevel: nothing that a build leaves lies beside the sources; what is built goes
// to bin, dist and .cache, which are ignored.
func TestTopLevel(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(internal, "..", "*"))
	require.NoError(t, err)
	known := []string{
		"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "bin", "cmd", "dashboards",
		"deploy", "dist", "docs", "go.mod", "go.sum", "internal",
	}
	for _, file := range files {
		if name := filepath.Base(file); name[0] != '.' {
			require.Contains(t, known, name)
		}
	}
}

// TestFixtures: what is looked for is found.
func TestFixtures(t *testing.T) {
	calls, err := Calls("testdata/downwards")
	require.NoError(t, err)
	require.NotEmpty(t, calls)
	require.Empty(t, Upwards(calls))
	require.Empty(t, Circles(calls))

	calls, err = Calls("testdata/upwards")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"bottom.go", "middle.go", "top.go"}}, Circles(calls))
	up := Upwards(calls)
	require.Len(t, up, 3)
	for _, want := range []Call{
		{From: "top.go", To: "middle.go", Caller: "Run", Callee: "step"},           // a method
		{From: "middle.go", To: "bottom.go", Caller: "step", Callee: "finish"},     // a function that is named, not called
		{From: "bottom.go", To: "top.go", Caller: "a declaration", Callee: "name"}, // out of a variable
	} {
		require.True(t, slices.Contains(up, want), "%v in %v", want, up)
	}
}
