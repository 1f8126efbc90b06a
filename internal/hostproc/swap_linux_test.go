package hostproc

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// Files, folders and symlinks that change places while they are opened lead nowhere
// out of the root, to nothing but a regular file, and to no other mount.
func TestSwappedWhileOpened(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "root")
	proctest.WriteTree(t, outside, map[string]string{"secret/file": "outside", "root/a/file": "inside", "root/secret/file": "inside"})
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "b")))
	require.NoError(t, os.Symlink("../secret", filepath.Join(dir, "c")))
	require.NoError(t, os.Symlink("/proc/self/root"+outside+"/secret", filepath.Join(dir, "d")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "e"), 0o600))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "swapped")))
	var swaps atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			other := filepath.Join(dir, string("abcde"[i%5]))
			if unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "swapped"), unix.AT_FDCWD, other, unix.RENAME_EXCHANGE) == nil {
				swaps.Add(1)
			}
		}
	}()
	defer func() { close(stop); <-done }()
	root, err := fakeRoot(t, dir).OpenRoot(7, "root", Disposable)
	require.NoError(t, err)
	defer root.Close()
	before, opened := swaps.Load(), 0
	for n := 0; n < 3000 || swaps.Load() < before+3000; n++ {
		data, err := contents(root, "/swapped/file")
		if err == nil {
			opened++
			require.Equal(t, "inside", string(data))
		}
		_, _ = contents(root, "/swapped")
	}
	require.Positive(t, opened)
}
