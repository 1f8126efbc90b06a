package structure

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePathOfASample: what docs/architecture.md says of a sample's way is so, and it can
// be read by opening a dozen files.
func TestThePathOfASample(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(internal, "..", "docs", "architecture.md"))
	require.NoError(t, err)
	rows := Path(string(page), "## The way of one sample")
	require.Greater(t, len(rows), 10)
	var packages, above, files []string
	for i := range rows {
		if !slices.Contains(packages, rows[i].Package) {
			packages = append(packages, rows[i].Package)
		}
	}
	g, err := NewGraph(internal, packages...)
	require.NoError(t, err)
	for i := range rows {
		r := &rows[i]
		for j, name := range r.Functions {
			key := r.Package + "." + name
			require.Contains(t, g.File, key, "%s is no function of %s", name, r.Package)
			if !slices.Contains(files, g.File[key]) {
				files = append(files, g.File[key])
			}
			reached := slices.ContainsFunc(above, func(from string) bool { return g.Reaches(from, key) })
			require.True(t, reached || j == 0 && (i == 0 || r.Apart()), "nothing above %s calls it", key)
			above = append(above, key)
		}
	}
	require.LessOrEqual(t, len(files), 15, "files to open: %v", files)
	t.Logf("%d files: %v", len(files), files)

	require.False(t, g.Reaches("losses.Books.Tick", "schedule.tasks.sample"), "what is not called is not reached")
}
