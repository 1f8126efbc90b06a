package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A decision is short: its numbers are results. Each page is in the index that it
// belongs to.
func TestDocumentsAreInProportion(t *testing.T) {
	const most = 400
	pages := documents(t)
	decisions := 0
	for name, text := range pages {
		base := filepath.Base(name)
		switch dir := filepath.ToSlash(filepath.Dir(name)); {
		case base == "README.md":
		case dir == "docs/decisions":
			decisions++
			require.LessOrEqual(t, len(strings.Fields(text)), most, "%s: its numbers belong to docs/results", name)
			require.Contains(t, pages["docs/decisions/README.md"], "("+base+")")
		case dir == "docs/results":
			require.Contains(t, pages["docs/results/README.md"], "("+base+")")
		case dir == "docs":
			require.Contains(t, pages["docs/README.md"], "("+base, name)
		}
	}
	require.Greater(t, decisions, 10)
}
