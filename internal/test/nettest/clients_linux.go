package nettest

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Queue opens n clients of a listener from the namespace of the calling thread.
// They are connected when it returns and stay so until the test ends.
func Queue(tb testing.TB, addr netip.AddrPort, n int) []net.Conn {
	tb.Helper()
	clients := make([]net.Conn, 0, n)
	for i := range n {
		fd := tcpSocket(tb, addr)
		require.NoError(tb, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 20}))
		if err := connect(fd, addr); err != nil {
			_ = unix.Close(fd)
			require.NoError(tb, err, "client %d of %d (in progress: not within 20 s, the queue is full)", i+1, n)
		}
		clients = append(clients, conn(tb, fd))
	}
	return clients
}

// connect waits for the handshake. A signal, such as the one by which Go's
// scheduler preempts a thread, ends the waiting and not the handshake: a second
// connect(2) continues to wait (__inet_stream_connect, SS_CONNECTING).
func connect(fd int, addr netip.AddrPort) error {
	for {
		if err := unix.Connect(fd, sockaddr(addr)); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Overflow makes n Attempts at a listener of the calling thread's namespace whose
// accept queue is full: each is one ListenOverflow and one ListenDrop. It returns
// when the kernel has counted them, since behind a busy CPU the softirqs that do
// come a little later.
func Overflow(tb testing.TB, addr netip.AddrPort, n int) {
	tb.Helper()
	wanted := TCPExt(tb)("ListenDrops") + uint64(n)
	Attempts(tb, addr, n)
	// Not by require.Eventually, which asks from another thread.
	for deadline := time.Now().Add(time.Minute); TCPExt(tb)("ListenDrops") < wanted; time.Sleep(time.Millisecond) {
		require.True(tb, time.Now().Before(deadline), "the accept queue of %s is not full", addr)
	}
}

// Attempts sends n SYNs, each of a client that closes before it would repeat it.
func Attempts(tb testing.TB, addr netip.AddrPort, n int) {
	tb.Helper()
	for range n {
		fd := tcpSocket(tb, addr)
		require.NoError(tb, unix.SetNonblock(fd, true))
		if err := unix.Connect(fd, sockaddr(addr)); !errors.Is(err, unix.EINPROGRESS) {
			require.NoError(tb, err)
		}
		require.NoError(tb, unix.Close(fd))
	}
}

func tcpSocket(tb testing.TB, addr netip.AddrPort) int {
	tb.Helper()
	family := unix.AF_INET6
	if addr.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	require.NoError(tb, err)
	return fd
}

func sockaddr(addr netip.AddrPort) unix.Sockaddr {
	if addr.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
}

func port(sa unix.Sockaddr) uint16 {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return uint16(sa.Port)
	case *unix.SockaddrInet6:
		return uint16(sa.Port)
	}
	return 0
}
