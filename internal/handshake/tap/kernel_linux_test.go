package tap

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// world is where a server is, and where its clients are.
type world struct {
	server, clients *nettest.NS
	addr            netip.Addr
	oneWay          bool   // its taps do not read outgoing packets until something happens
	counting        func() // what comes before its taps read the counters, unless nil
}

// worlds are all ways of clients to their server that the tests try.
func worlds(t *testing.T, try func(t *testing.T, w world)) {
	t.Parallel()
	on(t, "loopback, IPv4", "127.0.0.1", try)
	on(t, "loopback, IPv6", "::1", try)
	across(t, "veth, IPv4", nettest.Veth, try)
	across(t, "veth, IPv6", vethIPv6, try)
	acrossOneWay(t, try)
	on(t, "loopback, one way", "127.0.0.1", oneWayIn(try))
}

// twoWorlds are two of them, for what takes long.
func twoWorlds(t *testing.T, try func(t *testing.T, w world)) {
	t.Parallel()
	on(t, "loopback, IPv6", "::1", try)
	across(t, "veth, IPv4", nettest.Veth, try)
	acrossOneWay(t, try)
}

func acrossOneWay(t *testing.T, try func(t *testing.T, w world)) {
	across(t, "veth, one way", nettest.Veth, oneWayIn(try))
}

func oneWayIn(try func(t *testing.T, w world)) func(t *testing.T, w world) {
	return func(t *testing.T, w world) {
		w.oneWay = true
		try(t, w)
	}
}

func on(t *testing.T, name, addr string, try func(t *testing.T, w world)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		ns := nettest.Namespace(t)
		try(t, world{server: ns, clients: ns, addr: netip.MustParseAddr(addr)})
	})
}

func across(t *testing.T, name string, join func(tb testing.TB, a, b *nettest.NS) (addrA, addrB netip.Addr), try func(t *testing.T, w world)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		server, clients := nettest.Namespace(t), nettest.Namespace(t)
		addr, _ := join(t, server, clients)
		try(t, world{server: server, clients: clients, addr: addr})
	})
}

func vethIPv6(tb testing.TB, a, b *nettest.NS) (addrA, addrB netip.Addr) {
	nettest.Veth(tb, a, b)
	return nettest.VethIPv6(tb, a, b)
}

func (w world) listen(t *testing.T, backlog int) (l *nettest.Listener) {
	w.server.Do(func() {
		l = nettest.Listen(t, nettest.ListenOptions{Address: netip.AddrPortFrom(w.addr, 0).String(), Backlog: backlog})
	})
	return l
}

// tap follows ports of the server's namespace until the test ends.
func (w world) tap(t *testing.T, ports ...uint16) *Tap {
	var tap *Tap
	w.server.Do(func() {
		var err error
		tap, err = Open(w.options(t, Options{Ports: ports}))
		require.NoError(t, err)
	})
	t.Cleanup(func() { _ = tap.Close() })
	return tap
}

// client is one that connects without waiting for it.
type client struct {
	fd  int
	err error // of connect(2) itself
}

// connect starts n clients, each of a port of its own.
func (w world) connect(t *testing.T, to netip.AddrPort, n int) []*client {
	clients := make([]*client, n)
	w.clients.Do(func() {
		for i := range clients {
			clients[i] = dial(t, nil, to)
		}
	})
	return clients
}

// dial starts to connect, from a local address unless that is nil.
func dial(t *testing.T, local unix.Sockaddr, to netip.AddrPort) *client {
	c := newClient(t, to)
	if local != nil {
		require.NoError(t, unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
		require.NoError(t, unix.Bind(c.fd, local))
	}
	c.begin(to)
	return c
}

func (c *client) begin(to netip.AddrPort) {
	if err := unix.Connect(c.fd, sockaddrOf(to)); !errors.Is(err, unix.EINPROGRESS) {
		c.err = err
	}
}

func newClient(t *testing.T, to netip.AddrPort) *client {
	family := unix.AF_INET6
	if to.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	c := &client{fd: fd}
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
		c.fd = -1
	}
}

// state is how connect(2) ended, if it has.
func (c *client) state(t *testing.T) (connected bool, err error) {
	if c.err != nil {
		return false, c.err
	}
	fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	if errors.Is(err, unix.EINTR) {
		return false, nil // it is asked again
	}
	require.NoError(t, err)
	if n == 0 {
		return false, nil
	}
	errno, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	require.NoError(t, err)
	if errno != 0 {
		c.err = unix.Errno(errno) // the kernel says it once
	}
	return errno == 0, c.err
}

func sockaddrOf(to netip.AddrPort) unix.Sockaddr {
	if to.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
}

// decided waits until the tap has decided n clients of an address, and no more.
func decided(t *testing.T, tap *Tap, addr netip.AddrPort, n uint64) outcome.Endpoint {
	t.Helper()
	var found outcome.Endpoint
	require.Eventually(t, func() bool {
		found = countedAt(t, tap, addr)
		return sumOf(found.Clients) >= n
	}, 90*time.Second, 50*time.Millisecond, "%d clients: %v", n, &found)
	require.Equal(t, n, sumOf(found.Clients), "%+v", found)
	return found
}

// countedAt is what the tap has counted of an address.
func countedAt(t *testing.T, tap *Tap, addr netip.AddrPort) (found outcome.Endpoint) {
	t.Helper()
	r, err := tap.Report()
	require.NoError(t, err)
	require.Zero(t, r.Lost)
	for _, e := range r.Endpoints {
		if e.Addr == addr {
			found = e
		}
	}
	return found
}

// A listener with backlog 5 that never accepts: six clients are in, whatever
// the others do; these give up.
func TestGaveUp(t *testing.T) {
	worlds(t, func(t *testing.T, w world) {
		const room, clients = 6, 40
		l := w.listen(t, room-1)
		tap := w.tap(t, l.Addr.Port())
		w.clients.Do(func() { nettest.Queue(t, l.Addr, room) })
		for _, c := range w.connect(t, l.Addr, clients) {
			in, _ := c.state(t)
			require.False(t, in)
			c.close() // its connect timeout is over: it sends no second SYN
		}
		e := decided(t, tap, l.Addr, room+clients)
		require.EqualValues(t, room, e.Clients[outcome.Connected])
		require.EqualValues(t, clients, e.Clients[outcome.GaveUp])
		require.EqualValues(t, clients, e.Losers[0].Clients)
	})
}

func sumOf(clients [outcome.NumOutcomes]uint64) (n uint64) {
	for _, c := range clients {
		n += c
	}
	return n
}
