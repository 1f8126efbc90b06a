package nettest

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// SilentFileSystem mounts a FUSE file system on which nobody ever answers until
// the test ends; the test is skipped where none can be mounted.
func SilentFileSystem(t testing.TB) (dir string) {
	t.Helper()
	Root(t)
	dev, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("/dev/fuse: %v", err)
	}
	dir, err = os.MkdirTemp("", "silent")
	if err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", dev)
	if err := unix.Mount("silent", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		_ = unix.Close(dev)
		_ = os.Remove(dir)
		t.Skipf("mount of FUSE: %v", err)
	}
	t.Cleanup(func() {
		_ = unix.Close(dev) // ends the connection: every waiter gets an error
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		_ = os.Remove(dir)
	})
	return dir
}
