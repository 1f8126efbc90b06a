package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page of some boots says which are missing, what failed and why.
func TestDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte(console+"@@exit 0 20\n@@end\n@@took 31 12\n@@commit 01abcdef23\n"), 0o600))
	r, err := readResult("6.1.0-50-cloud-amd64", []bootLog{{"features", path}, {"java", path + "2"}}, false)
	require.NoError(t, err)
	require.False(t, r.ok())
	page := document([]result{r}, "* the short form\n")
	for _, want := range []string{
		"|  | 6.1.0 |\n", "| open files by stat | yes, since 6.2 |\n", "| sockdiag | 1 passed, **1 failed**, 1 skipped |\n",
		"| wall time | 31 s |\n", "| of it processor time | 12 s |\n",
		"* 6.1.0: 6.1.0-50-cloud-amd64 at commit 01abcdef23, up after 3.5 s of its clock; not run yet: java\n",
		"  * failed: sockdiag TestA: Not equal: expected: 1 actual : 2 (5 / times)\n", "took:\n\n* the short form\n",
	} {
		require.Contains(t, page, want)
	}
	_, err = readResult("6.1.0", []bootLog{{"features", path + "2"}}, false)
	require.ErrorIs(t, err, os.ErrNotExist)
}
