package incident

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A disk without room makes a gap, and nothing else; when there is room again the
// recording continues.
func TestDiskWithoutRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a file system of its own takes root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0750"); err != nil {
		t.Skipf("no file system of its own: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	d, tracker := newDirect(t, dir, someLimits())
	v := newLife(1)
	v.seconds(5, connectionsFull, tracker, d)
	require.Zero(t, d.lost.Load())
	ballast := dir + "/ballast"
	require.ErrorIs(t, os.WriteFile(ballast, make([]byte, 128<<10), 0o600), syscall.ENOSPC)
	for d.lost.Load() == 0 {
		tracker.record(v.next(connectionsFull), d)
	}
	v.seconds(10, connectionsFull, tracker, d)
	lost := int(d.lost.Load())
	require.Equal(t, uint64(1), d.failures.Load(), "said once")
	require.NoError(t, os.Remove(ballast))
	v.seconds(5, connectionsFull, tracker, d)
	in, err := d.open(d.shelf.list()[0].ID)
	require.NoError(t, err)
	r, frames := readAll(t, in)
	require.Zero(t, r.Damaged, "what was written in part was taken back")
	require.Len(t, frames, len(d.frames)-lost)
	for _, f := range frames {
		_, same, _ := f.Replay()
		require.True(t, same)
	}
	tracker.stop(v.now, d)
	d.close()
}
