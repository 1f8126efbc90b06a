// Package golden compares files that are drawn from the code with what they should have.
package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Equal requires a file to have a text. UPDATE=1 writes it instead: read what changed before
// committing it.
func Equal(t testing.TB, path, want string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))  //nolint:gosec // docs and test data
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644)) //nolint:gosec // docs and test data
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err, "UPDATE=1 go test writes it")
	require.Equal(t, string(got), want, "UPDATE=1 writes it: read what changed")
}
