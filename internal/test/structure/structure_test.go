package structure

import (
	"path/filepath"
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
		"assemble", "clients", "connections", "connscan", "diagnosis", "discovery", "evidence", "evidence/reader", "facts", "handshake",
		"hostproc", "hostproc/cgroup", "hostproc/hsperf", "hostproc/netstat", "hostproc/openfiles", "hostproc/procfile",
		"hostproc/threads", "incident", "losses", "model", "namespace", "owner", "schedule", "sockdiag", "watchlist",
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

// TestReadersStayApart: what reads /proc is in packages with one job each, and a screen
// only prints.
func TestReadersStayApart(t *testing.T) {
	for name, most := range map[string]int{
		"hostproc": 30, "hostproc/cgroup": 15, "hostproc/hsperf": 15, "hostproc/netstat": 15, "hostproc/openfiles": 15,
		"hostproc/procfile": 15, "hostproc/threads": 15, "render": 20,
	} {
		sizes, err := Sizes(filepath.Join(internal, name))
		require.NoError(t, err)
		for typ, size := range sizes {
			require.LessOrEqual(t, size.Methods, most, "methods of %s.%s", name, typ)
		}
	}
	files, err := filepath.Glob(filepath.Join(internal, "hostproc", "*.go"))
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	require.LessOrEqual(t, len(files), 30, "files of hostproc")
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
	sizes, err := Sizes("testdata/upwards")
	require.NoError(t, err)
	require.Equal(t, Size{Fields: 3, Methods: 2}, sizes["task"])
}
