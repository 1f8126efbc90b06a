package reader

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
)

// Whether a process listens on another port is seen by its descriptors, where nobody knows whose the others are.
func TestListensAlone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	raw, err := l.(*net.TCPListener).SyscallConn()
	require.NoError(t, err)
	var st syscall.Stat_t
	require.NoError(t, raw.Control(func(fd uintptr) { err = syscall.Fstat(int(fd), &st) }))
	require.NoError(t, err)
	alone := func(unowned ...uint32) *Reader {
		return &Reader{proc: hostfs.Real(t), of: Listener{PID: os.Getpid(), Unowned: unowned}, now: time.Now}
	}
	own := uint32(st.Ino)
	require.False(t, alone(own).listensAlone(), "it is its own")
	require.False(t, alone(own+1, own).listensAlone())
	r := alone(own + 1)
	require.True(t, r.listensAlone(), "it is another's")
	require.False(t, r.listensAlone(), "it is searched once")
	require.False(t, alone().listensAlone(), "nothing is to be searched for")
}
