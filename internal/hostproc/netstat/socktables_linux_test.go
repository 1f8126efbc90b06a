package netstat

import (
	"bytes"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

// A connection that its peer has reset is still a descriptor, but in no table.
func TestKernelSockets(t *testing.T) {
	fs := hostfs.Real(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", listener.Addr().String())
	require.NoError(t, err)
	server, err := listener.Accept()
	require.NoError(t, err)
	defer func() { _ = server.Close() }()
	inode := inodeOfConn(t, server.(*net.TCPConn))

	require.Contains(t, kernelSockets(t, fs), inode)
	require.NoError(t, client.(*net.TCPConn).SetLinger(0))
	require.NoError(t, client.Close())
	_, err = server.Read(make([]byte, 1))
	require.ErrorIs(t, err, unix.ECONNRESET)
	require.NotContains(t, kernelSockets(t, fs), inode)
	held := false
	require.NoError(t, fs.SocketInodes(os.Getpid(), func(n uint32) { held = held || n == inode }))
	require.True(t, held)
}

func kernelSockets(t *testing.T, fs hostproc.FS) map[uint32]bool {
	t.Helper()
	known := map[uint32]bool{}
	require.NoError(t, KernelSockets(fs, os.Getpid(), func(inode uint32) { known[inode] = true }))
	return known
}

func inodeOfConn(t *testing.T, conn *net.TCPConn) uint32 {
	t.Helper()
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	var st unix.Stat_t
	require.NoError(t, raw.Control(func(fd uintptr) {
		if err := unix.Fstat(int(fd), &st); err != nil {
			t.Error(err)
		}
	}))
	return uint32(st.Ino)
}

const captureTCP = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode" +
	"                                                     \n" +
	"   0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1133598 1 " +
	"0000000000000000 100 0 0 10 0                     \n"

func TestParseSocketTable(t *testing.T) {
	var inodes []uint32
	err := (&socketTable{"tcp", 9, true}).parse(bytes.NewReader([]byte(captureTCP+"short line\n\n")), func(n uint32, _ []byte) bool {
		inodes = append(inodes, n)
		return true
	})
	require.NoError(t, err)
	require.Equal(t, []uint32{1133598}, inodes)
}

func FuzzParseSocketTable(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte(captureTCP))
	m.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		_ = (&socketTable{"tcp", 9, true}).parse(bytes.NewReader(data), func(uint32, []byte) bool { n++; return true })
		require.LessOrEqual(t, n, bytes.Count(data, []byte{'\n'})+1)
	})
}
