package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the folder that the READMEs' commands are run from.
const root = "../../.."

// readme has the code blocks of a README, and knows which of them were used.
type readme struct {
	path   string
	blocks []string
	used   map[string]bool
}

// readBlocks reads the blocks of one language.
func readBlocks(t *testing.T, path, language string) *readme {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	r := &readme{path: path, used: map[string]bool{}}
	for _, part := range strings.Split(string(text), "\n```"+language+"\n")[1:] {
		block, _, closed := strings.Cut(part, "\n```")
		require.True(t, closed, "%s: a block has no end", path)
		r.blocks = append(r.blocks, block)
	}
	return r
}

// block is the only one with this text in it.
func (r *readme) block(t *testing.T, text string) string {
	t.Helper()
	var found []string
	for _, b := range r.blocks {
		if strings.Contains(b, text) {
			found = append(found, b)
		}
	}
	require.Len(t, found, 1, "%s: blocks with %q", r.path, text)
	r.used[found[0]] = true
	return found[0]
}

// requireAllUsed holds that no block with one of these commands was left out.
func (r *readme) requireAllUsed(t *testing.T, commands ...string) {
	t.Helper()
	for _, b := range r.blocks {
		for _, c := range commands {
			if strings.HasPrefix(b, c) || strings.Contains(b, "\n"+c) {
				require.True(t, r.used[b], "%s: this was never run:\n%s", r.path, b)
			}
		}
	}
}
