package structure

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePaths: what docs/architecture.md says of a sample's way and of a dropped packet's is so, with
// every function in between, and each can be read by opening a dozen files.
func TestThePaths(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(internal, "..", "docs", "architecture.md"))
	require.NoError(t, err)
	for _, heading := range []string{"## The way of one sample", "## The way of a dropped packet"} {
		t.Run(heading, func(t *testing.T) { follow(t, Path(string(page), heading)) })
	}
}

// follow fails unless each function of a path is there, and is called by one above it, itself, but
// where a clock wakes up or the kernel's answer calls back.
func follow(t *testing.T, rows []Row) {
	t.Helper()
	require.GreaterOrEqual(t, len(rows), 10)
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
			called := slices.ContainsFunc(above, func(from string) bool { return g.Calls(from, key) })
			require.True(t, called || j == 0 && (i == 0 || r.Apart()), "nothing above %s calls it", key)
			above = append(above, key)
		}
	}
	require.LessOrEqual(t, len(files), 15, "files to open: %v", files)
	t.Logf("%d files: %v", len(files), files)

	require.False(t, g.Calls("schedule.Scheduler.Sample", "namespace.sampler.sample"), "what is called by way of others is not called")
}
