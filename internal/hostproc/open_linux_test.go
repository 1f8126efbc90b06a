package hostproc

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a process has at a path is what it sees there itself, not we.
func TestOpenRegular(t *testing.T) {
	needRoot(t)
	fs := realProc(t)
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"etc/passwd": "inside", "srv/app/config.yml": "config"})
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "absolute")))
	require.NoError(t, os.Symlink("../../../../etc/passwd", filepath.Join(dir, "srv/up")))
	require.NoError(t, os.Symlink("app", filepath.Join(dir, "srv/current")))
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	c := startChild(t, "chroot", dir)

	for path, want := range map[string]string{
		"/etc/passwd":             "inside",
		"/absolute":               "inside",
		"/srv/up":                 "inside",
		"/srv/current/config.yml": "config",
		"/../etc/passwd":          "inside",
	} {
		f, err := fs.OpenRegular(c.pid(), path)
		require.NoError(t, err, path)
		data, err := io.ReadAll(f)
		require.NoError(t, err, path)
		require.Equal(t, want, string(data), path)
		require.NoError(t, f.Close())
	}
	for _, path := range []string{"/fifo", "/etc", "/", ""} {
		_, err := fs.OpenRegular(c.pid(), path)
		require.Error(t, err, path)
	}
	_, err := fs.OpenRegular(c.pid(), "/loop")
	require.ErrorIs(t, err, syscall.ELOOP)
	_, err = fs.OpenRegular(c.pid(), "/nothing")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, ErrGone)
}

// Without openat2 an absolute symlink is an error, never our own file.
func TestOpenPlain(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"etc/passwd": "inside"})
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "absolute")))
	require.NoError(t, os.Symlink("etc/passwd", filepath.Join(dir, "relative")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	root, err := fakeRoot(t, dir).openRoot(7)
	require.NoError(t, err)
	defer root.Close()
	root.plain = true
	for _, path := range []string{"/etc/passwd", "/relative"} {
		data, err := root.readFile(path)
		require.NoError(t, err, path)
		require.Equal(t, "inside", string(data), path)
	}
	for _, path := range []string{"/absolute", "/fifo", "/", "/../x", "/nothing"} {
		_, err := root.readFile(path)
		require.Error(t, err, path)
	}
}
