package nettest

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Opens watches a file of any kind and returns how often it has been opened
// since the last call (inotify(7), IN_OPEN; O_PATH opens nothing).
func Opens(tb testing.TB, path string) func() int {
	tb.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = unix.Close(fd) })
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_DONT_FOLLOW)
	require.NoError(tb, err)
	return func() (n int) {
		buf := make([]byte, 4<<10)
		for {
			got, err := unix.Read(fd, buf)
			if err != nil {
				require.ErrorIs(tb, err, unix.EAGAIN)
				return n
			}
			for b := buf[:got]; len(b) >= unix.SizeofInotifyEvent; {
				if binary.NativeEndian.Uint32(b[4:])&unix.IN_OPEN != 0 {
					n++
				}
				b = b[unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(b[12:])):]
			}
		}
	}
}
