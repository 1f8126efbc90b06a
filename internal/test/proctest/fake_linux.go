package proctest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fake makes a folder that looks like proc to NewFS, for kernels and
// machines other than this one.
func Fake(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Symlink("1", filepath.Join(dir, "self")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "1"), 0o700))
	WriteTree(t, dir, files)
	return dir
}

// FakeRoot is one in which process 7 has dir for its root.
func FakeRoot(t *testing.T, dir string) string {
	t.Helper()
	mount := Fake(t, nil)
	require.NoError(t, os.Mkdir(filepath.Join(mount, "7"), 0o700))
	require.NoError(t, os.Symlink(dir, filepath.Join(mount, "7", "root")))
	return mount
}

// WriteTree writes files into a folder.
func WriteTree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
}

// PublicDir is a folder that other users can enter: the parent of TempDir is its owner's alone.
func PublicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "public-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // others enter it
	return dir
}
