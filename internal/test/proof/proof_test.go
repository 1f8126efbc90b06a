package proof

import (
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
	names := make(map[string]bool)
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
	require.Contains(t, string(text), "-->\n"+Table()+"<!-- /proofs -->", "go run ./internal/test/proof/prove -list")
}
