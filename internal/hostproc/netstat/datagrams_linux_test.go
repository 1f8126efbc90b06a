package netstat

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
)

// inodeOf is the socket's number, as the links of /proc/PID/fd have it.
func inodeOf(t *testing.T, c syscall.Conn) uint32 {
	t.Helper()
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	var st unix.Stat_t
	require.NoError(t, raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) }))
	require.NoError(t, err)
	return uint32(st.Ino)
}

func TestDatagrams(t *testing.T) {
	fs := hostfs.Real(t)
	want := map[uint32]netip.AddrPort{}
	for _, to := range []string{"127.0.0.1:5353", "[::1]:53"} {
		c, err := net.Dial("udp", to)
		if err != nil && to[0] == '[' {
			continue // no IPv6 here
		}
		require.NoError(t, err)
		defer c.Close()
		want[inodeOf(t, c.(*net.UDPConn))] = netip.MustParseAddrPort(to)
	}
	free, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer free.Close()
	want[inodeOf(t, free)] = netip.AddrPort{}
	got := map[uint32]netip.AddrPort{}
	require.NoError(t, Datagrams(fs, os.Getpid(), func(inode uint32, peer netip.AddrPort) {
		if _, ours := want[inode]; ours {
			got[inode] = peer
		}
	}))
	require.Equal(t, want, got)
	require.Error(t, Datagrams(fs, 1<<23, nil))
}

func TestUnixSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer c.Close()
	inode, found := inodeOf(t, c.(*net.UnixConn)), 0
	require.NoError(t, UnixSockets(hostfs.Real(t), os.Getpid(), func(i uint32) {
		if i == inode {
			found++
		}
	}))
	require.Equal(t, 1, found)
}

func TestHexPeer(t *testing.T) {
	for s, want := range map[string]string{
		"0900007F:0035": "127.0.0.9:53", "00000000000000000000000001000000:0035": "[::1]:53", "0000000000000000FFFF00000900007F:0035": "127.0.0.9:53",
		"00000000:0000": "invalid AddrPort", "": "invalid AddrPort", "zz:35": "invalid AddrPort", "0900:35": "invalid AddrPort", "0900007F": "invalid AddrPort",
	} {
		require.Equal(t, want, hexPeer(s).String(), s)
	}
}
