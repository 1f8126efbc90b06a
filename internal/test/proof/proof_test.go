package proof

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

const root = "../../.."

// Each proof covers files that there are, writes into docs/results, and has a name of
// its own.
func TestProofsAreWhole(t *testing.T) {
	names, code := make(map[string]bool), sources(t)
	for _, p := range All() {
		require.False(t, names[p.Name], p.Name)
		names[p.Name] = true
		require.NotEmpty(t, p.What, p.Name)
		require.NotEmpty(t, p.Run, p.Name)
		require.Positive(t, p.Minutes, p.Name)
		require.NotEmpty(t, p.Covers, p.Name)
		require.DirExists(t, filepath.Join(root, p.Dir))
		for _, path := range p.Covers {
			require.DirExists(t, filepath.Join(root, path), p.Name)
		}
		for _, file := range p.Results {
			require.True(t, strings.HasPrefix(file, "docs/results/"), file)
			name := regexp.MustCompile(`\d+\.md$`).ReplaceAllString(filepath.Base(file), "%d.md")
			require.True(t, strings.Contains(code, name), "%s: no program writes %s", p.Name, file)
		}
		for _, arg := range p.Run {
			if strings.HasPrefix(arg, "./") && !strings.HasSuffix(arg, "...") {
				_, err := os.Stat(filepath.Join(root, p.Dir, arg))
				require.NoError(t, err, p.Name)
			}
		}
	}
}

// The Makefile stays small enough to be read, and help has a line for each target.
func TestMakefile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	helped := regexp.MustCompile(`(?m)^[a-z-]+:.*## .+$`).FindAllString(string(text), -1)
	all := regexp.MustCompile(`(?m)^[a-z-]+:`).FindAllString(string(text), -1)
	require.Len(t, helped, len(all))
	require.LessOrEqual(t, len(all), 20)
	named := regexp.MustCompile(`(?m)^\t\$\(PROVE\) ([a-z][a-z -]+)$`).FindStringSubmatch(string(text))
	require.NotNil(t, named, "test-all runs some proofs")
	for name := range strings.FieldsSeq(named[1]) {
		require.True(t, slices.ContainsFunc(All(), func(p Proof) bool { return p.Name == name }), name)
	}
}

// Contributing has the table of the proofs that `prove -list` prints.
func TestContributingHasTheTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	require.True(t, strings.Contains(string(text), "-->\n"+Table()+"<!-- /proofs -->"), "go run ./internal/test/proof/prove -list")
}

// sources are the files of tests and rigs, but for the list of proofs.
func sources(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"internal", "cmd", "deploy"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			rig := strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".go") && strings.Contains(filepath.ToSlash(path), "/test/") || strings.HasSuffix(path, ".sh")
			if err != nil || entry.IsDir() || !rig || filepath.Base(path) == "list.go" && filepath.Base(filepath.Dir(path)) == "proof" {
				return err
			}
			text, err := os.ReadFile(path)
			b.Write(text)
			return err
		}))
	}
	return b.String()
}

// One variable decides which tests run. What else one can be told by the environment is in
// CONTRIBUTING.md, but for what tests tell their own children, and what everybody knows.
func TestVariablesAreListed(t *testing.T) {
	code := sources(t)
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	usual := []string{"PATH", "CI", "UPDATE", "TERM", "HOME"}
	seen, listed := make(map[string]bool), 0
	for _, m := range regexp.MustCompile(`(?:Getenv|LookupEnv)\("(\w+)"\)`).FindAllStringSubmatch(code, -1) {
		name := m[1]
		told := strings.Contains(code, name+"=") || strings.Contains(code, `Setenv("`+name+`"`)
		if seen[name] || told || slices.Contains(usual, name) {
			continue
		}
		seen[name] = true
		require.True(t, strings.Contains(string(page), "`"+name), "CONTRIBUTING.md has no word of %s, which a test reads", name)
		listed++
	}
	require.Positive(t, listed)
}
