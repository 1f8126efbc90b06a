package nettest

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ListenOptions describe a listener. The zero value of Address is 127.0.0.1:0.
type ListenOptions struct {
	Address   string // "127.0.0.1:0", "[::]:8080", "[::ffff:127.0.0.1]:0"; IPv6 literals make an IPv6 socket
	Backlog   int
	V6Only    bool   // IPV6_V6ONLY; otherwise [::] takes IPv4 too
	ReusePort bool   // SO_REUSEPORT
	Device    string // SO_BINDTODEVICE
	// DeferAccept is TCP_DEFER_ACCEPT in seconds: a connection stays in
	// SYN_RECV until its client sends something.
	DeferAccept int
	// Freebind and Transparent are IP_FREEBIND and IP_TRANSPARENT.
	Freebind, Transparent bool
}

// Listener is a bare listening socket that accepts nothing by itself.
type Listener struct {
	Addr  netip.AddrPort // bound address, the kernel's port in it
	Inode uint32
	fd    int
}

// Listen makes a listener in the namespace of the calling thread.
func Listen(tb testing.TB, o ListenOptions) *Listener {
	tb.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	addr, err := netip.ParseAddrPort(o.Address)
	require.NoError(tb, err)
	l := &Listener{fd: tcpSocket(tb, addr)}
	tb.Cleanup(l.Close)
	l.options(tb, o, addr)
	require.NoError(tb, unix.Bind(l.fd, sockaddr(addr)), "bind %q", o.Address)
	require.NoError(tb, unix.Listen(l.fd, o.Backlog))
	l.Inode = inode(tb, l.fd)
	bound, err := unix.Getsockname(l.fd)
	require.NoError(tb, err)
	l.Addr = netip.AddrPortFrom(addr.Addr(), port(bound))
	return l
}

func (l *Listener) options(tb testing.TB, o ListenOptions, addr netip.AddrPort) {
	tb.Helper()
	set := func(level, option, value int) {
		require.NoError(tb, unix.SetsockoptInt(l.fd, level, option, value))
	}
	set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if addr.Addr().Is6() {
		set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, boolInt(o.V6Only))
	}
	if o.ReusePort {
		set(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if o.DeferAccept > 0 {
		set(unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, o.DeferAccept)
	}
	if o.Freebind {
		set(unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
	}
	if o.Transparent {
		set(unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1)
	}
	if o.Device != "" {
		require.NoError(tb, unix.BindToDevice(l.fd, o.Device))
	}
}

// Relisten calls listen(2) again: the backlog changes, the socket stays.
func (l *Listener) Relisten(tb testing.TB, backlog int) {
	tb.Helper()
	require.NoError(tb, unix.Listen(l.fd, backlog))
}

// Shutdown is shutdown(2): it stops listening, the kernel resets what is queued,
// and the socket stays, to listen again.
func (l *Listener) Shutdown(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, unix.Shutdown(l.fd, unix.SHUT_RDWR))
}

// Accept takes n connections out of the queue; they stay open until the test
// ends. It fails the test after two seconds without one.
func (l *Listener) Accept(tb testing.TB, n int) []net.Conn {
	tb.Helper()
	require.NoError(tb, unix.SetsockoptTimeval(l.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}))
	conns := make([]net.Conn, 0, n)
	for range n {
		fd, _, err := unix.Accept4(l.fd, unix.SOCK_CLOEXEC)
		require.NoError(tb, err, "accept")
		conns = append(conns, conn(tb, fd))
	}
	return conns
}

// Close stops listening; the kernel resets what is queued. It may be called twice.
func (l *Listener) Close() {
	if l.fd >= 0 {
		_ = unix.Close(l.fd)
		l.fd = -1
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func inode(tb testing.TB, fd int) uint32 {
	tb.Helper()
	var st unix.Stat_t
	require.NoError(tb, unix.Fstat(fd, &st))
	return uint32(st.Ino)
}

// conn makes a net.Conn of a connected descriptor, closed when the test ends.
func conn(tb testing.TB, fd int) net.Conn {
	tb.Helper()
	file := os.NewFile(uintptr(fd), "tcp")
	c, err := net.FileConn(file)
	_ = file.Close() // FileConn has its own
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// File is another descriptor of the listener, to be handed to a process (see
// exec.Cmd.ExtraFiles) and closed.
func (l *Listener) File(tb testing.TB) *os.File {
	tb.Helper()
	fd, err := unix.FcntlInt(uintptr(l.fd), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(tb, err)
	return os.NewFile(uintptr(fd), "listener "+l.Addr.String())
}
