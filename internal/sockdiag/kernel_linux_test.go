package sockdiag_test

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// These tests ask the running kernel, each in a namespace of its own.

func dial(tb testing.TB, ns *nettest.NS) *sockdiag.Conn {
	tb.Helper()
	var c *sockdiag.Conn
	ns.Do(func() {
		var err error
		c, err = sockdiag.Dial()
		require.NoError(tb, err)
	})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func listen(tb testing.TB, ns *nettest.NS, o nettest.ListenOptions) *nettest.Listener {
	tb.Helper()
	var l *nettest.Listener
	ns.Do(func() { l = nettest.Listen(tb, o) })
	return l
}

func queue(tb testing.TB, ns *nettest.NS, addr netip.AddrPort, n int) {
	tb.Helper()
	ns.Do(func() { nettest.Queue(tb, addr, n) })
}

func listeners(tb testing.TB, c *sockdiag.Conn) []sockdiag.Listener {
	tb.Helper()
	var all []sockdiag.Listener
	require.NoError(tb, c.Listeners(func(l *sockdiag.Listener) error {
		all = append(all, *l)
		return nil
	}))
	return all
}

func sockets(tb testing.TB, c *sockdiag.Conn, ports ...uint16) []sockdiag.Socket {
	tb.Helper()
	var all []sockdiag.Socket
	require.NoError(tb, c.Sockets(ports, sockdiag.Connected(), func(s *sockdiag.Socket) error {
		all = append(all, *s)
		return nil
	}))
	return all
}

func TestListenerKinds(t *testing.T) {
	for _, test := range []struct {
		name    string
		options nettest.ListenOptions
		family  uint8
		address string // for people, without the port
		v6only  bool
		client  string
		device  bool
	}{
		{name: "IPv4", options: nettest.ListenOptions{Address: "127.0.0.1:0"}, family: sockdiag.FamilyIPv4, address: "127.0.0.1", client: "127.0.0.1"},
		{name: "IPv4 wildcard", options: nettest.ListenOptions{Address: "0.0.0.0:0"}, family: sockdiag.FamilyIPv4, address: "0.0.0.0", client: "127.0.0.1"},
		{name: "IP_FREEBIND", options: nettest.ListenOptions{Freebind: true}, family: sockdiag.FamilyIPv4, address: "127.0.0.1", client: "127.0.0.1"},
		{name: "IP_TRANSPARENT", options: nettest.ListenOptions{Transparent: true}, family: sockdiag.FamilyIPv4, address: "127.0.0.1", client: "127.0.0.1"},
		{name: "IPv6 only", options: nettest.ListenOptions{Address: "[::]:0", V6Only: true}, family: sockdiag.FamilyIPv6, address: "::", v6only: true, client: "::1"},
		{name: "IPv6 loopback", options: nettest.ListenOptions{Address: "[::1]:0"}, family: sockdiag.FamilyIPv6, address: "::1", v6only: true, client: "::1"},
		{name: "dual stack", options: nettest.ListenOptions{Address: "[::]:0"}, family: sockdiag.FamilyIPv6, address: "::", client: "127.0.0.1"},
		{name: "v4-mapped, as Java binds", options: nettest.ListenOptions{Address: "[::ffff:127.0.0.1]:0"}, family: sockdiag.FamilyIPv6, address: "127.0.0.1", client: "127.0.0.1"},
		{name: "v4-mapped wildcard", options: nettest.ListenOptions{Address: "[::ffff:0.0.0.0]:0"}, family: sockdiag.FamilyIPv6, address: "0.0.0.0", client: "127.0.0.1"},
		{name: "bound to a device", options: nettest.ListenOptions{Address: "0.0.0.0:0", Device: "lo"}, family: sockdiag.FamilyIPv4, address: "0.0.0.0", client: "127.0.0.1", device: true},
		{name: "IPv6 bound to a device", options: nettest.ListenOptions{Address: "[::]:0", Device: "lo"}, family: sockdiag.FamilyIPv6, address: "::", client: "::1", device: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			ns := nettest.Namespace(t)
			test.options.Backlog = 20
			l := listen(t, ns, test.options)
			c := dial(t, ns)
			queue(t, ns, netip.AddrPortFrom(netip.MustParseAddr(test.client), l.Addr.Port()), 7)

			dumped := listeners(t, c)
			require.Len(t, dumped, 1)
			got := dumped[0]
			require.Equal(t, test.family, got.Family)
			require.Equal(t, netip.AddrPortFrom(netip.MustParseAddr(test.address), l.Addr.Port()), got.Address())
			require.Equal(t, l.Inode, got.Inode)
			require.Equal(t, test.v6only, got.V6Only)
			require.True(t, got.HasOptions)
			require.Equal(t, test.options.Freebind, got.Freebind)
			require.Equal(t, test.options.Transparent, got.Transparent)
			require.Equal(t, test.device, got.Interface != 0)
			require.EqualValues(t, 7, got.RecvQ)
			require.EqualValues(t, 20, got.SendQ)
			require.True(t, got.HasDrops)
			require.NotZero(t, got.Cookie)

			var exact sockdiag.Listener
			require.NoError(t, c.Lookup(got.ListenerID, l.Inode, &exact))
			require.Equal(t, got, exact, "the exact request and the dump agree")
			require.NoError(t, c.Lookup(got.ListenerID, 0, &exact))

			found := sockets(t, c, l.Addr.Port())
			require.Len(t, found, 7)
			for _, s := range found {
				require.Equal(t, sockdiag.Established, s.State)
				require.Equal(t, test.family, s.Family)
				require.Zero(t, s.Inode, "queued, not accepted")
				require.Equal(t, netip.AddrPortFrom(netip.MustParseAddr(test.client), l.Addr.Port()), s.LocalAddress())
				require.Equal(t, netip.MustParseAddr(test.client), s.RemoteAddress().Addr())
			}
		})
	}
}

// TestFullQueue: sk_acceptq_is_full compares with ">", so a backlog of 5 holds 6.
func TestFullQueue(t *testing.T) {
	ns := nettest.Namespace(t)
	l := listen(t, ns, nettest.ListenOptions{Backlog: 5})
	c := dial(t, ns)
	queue(t, ns, l.Addr, 6)
	ns.Do(func() { nettest.Overflow(t, l.Addr, 40) })
	got := listeners(t, c)[0]
	require.EqualValues(t, 6, got.RecvQ)
	require.EqualValues(t, 5, got.SendQ)
	require.EqualValues(t, 40, got.Drops)
}

// TestQueueFallsWithAcceptAlone: who resets is no longer in the dump, and stays in the queue until somebody accepts.
func TestQueueFallsWithAcceptAlone(t *testing.T) {
	ns := nettest.Namespace(t)
	l := listen(t, ns, nettest.ListenOptions{Backlog: 5})
	c := dial(t, ns)
	ns.Do(func() {
		clients := nettest.Queue(t, l.Addr, 4)
		require.NoError(t, clients[1].(*net.TCPConn).SetLinger(0))
		require.NoError(t, clients[1].Close()) // RST
		require.NoError(t, clients[2].Close()) // FIN
		nettest.Within(t, time.Minute, "the reset has come", func() bool { return len(sockets(t, c, l.Addr.Port())) == 3 })
		require.EqualValues(t, 4, listeners(t, c)[0].RecvQ)
		l.Accept(t, 1)
		require.EqualValues(t, 3, listeners(t, c)[0].RecvQ)
	})
}

func TestBacklogIsClampedAtListen(t *testing.T) {
	ns := nettest.Namespace(t)
	ns.Sysctl(t, "net.core.somaxconn", "128")
	l := listen(t, ns, nettest.ListenOptions{Backlog: 5000})
	c := dial(t, ns)
	ns.Sysctl(t, "net.core.somaxconn", "8000")
	require.EqualValues(t, 128, listeners(t, c)[0].SendQ)
	l.Relisten(t, 5000)
	require.EqualValues(t, 5000, listeners(t, c)[0].SendQ)
}

func TestReusePortGroup(t *testing.T) {
	ns := nettest.Namespace(t)
	first := listen(t, ns, nettest.ListenOptions{Backlog: 10, ReusePort: true})
	want := map[uint32]bool{first.Inode: true}
	for range 3 {
		l := listen(t, ns, nettest.ListenOptions{Address: first.Addr.String(), Backlog: 10, ReusePort: true})
		want[l.Inode] = true
	}
	c := dial(t, ns)
	queue(t, ns, first.Addr, 12)

	got, queued := map[uint32]bool{}, uint32(0)
	found := 0
	for _, l := range listeners(t, c) {
		got[l.Inode] = true
		queued += l.RecvQ
		var exact sockdiag.Listener
		if err := c.Lookup(l.ListenerID, l.Inode, &exact); err == nil {
			require.Equal(t, l, exact)
			found++
		} else {
			require.ErrorIs(t, err, sockdiag.ErrNotFound)
		}
	}
	require.Equal(t, want, got)
	require.EqualValues(t, 12, queued)
	require.Equal(t, 1, found, "an exact request reaches one member, always the same")
}

func TestVanishedListener(t *testing.T) {
	ns := nettest.Namespace(t)
	l := listen(t, ns, nettest.ListenOptions{Backlog: 5})
	c := dial(t, ns)
	id := listeners(t, c)[0].ListenerID
	l.Close()
	out := sockdiag.Listener{Inode: 4711}
	err := c.Lookup(id, l.Inode, &out)
	require.ErrorIs(t, err, sockdiag.ErrNotFound)
	require.EqualError(t, err, "sockdiag: lookup: no such listener")
	require.EqualValues(t, 4711, out.Inode, "not touched")

	next := listen(t, ns, nettest.ListenOptions{Address: l.Addr.String(), Backlog: 5})
	require.ErrorIs(t, c.Lookup(id, l.Inode, &out), sockdiag.ErrNotFound, "same address, another socket")
	require.NoError(t, c.Lookup(id, next.Inode, &out))
}

// TestLookupAnsweredByAnother: inet_lookup may score another socket highest.
func TestLookupAnsweredByAnother(t *testing.T) {
	ns := nettest.Namespace(t)
	l := listen(t, ns, nettest.ListenOptions{Address: "[::]:0", Backlog: 5})
	device := listen(t, ns, nettest.ListenOptions{Address: "127.0.0.1:0", Backlog: 5, Device: "lo"})
	c := dial(t, ns)
	var out sockdiag.Listener
	for _, test := range []struct {
		name string
		id   sockdiag.ListenerID
	}{
		{"0.0.0.0 by [::]", sockdiag.ListenerID{Family: sockdiag.FamilyIPv4, Local: netip.AddrPortFrom(netip.IPv4Unspecified(), l.Addr.Port())}},
		{"127.0.0.1 by [::]", sockdiag.ListenerID{Family: sockdiag.FamilyIPv4, Local: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Addr.Port())}},
		{"[::1] by [::]", sockdiag.ListenerID{Family: sockdiag.FamilyIPv6, Local: netip.AddrPortFrom(netip.IPv6Loopback(), l.Addr.Port())}},
		{"a device's without the device", sockdiag.ListenerID{Family: sockdiag.FamilyIPv4, Local: device.Addr}},
	} {
		require.ErrorIs(t, c.Lookup(test.id, 0, &out), sockdiag.ErrNotFound, test.name)
	}
}

func TestLookupRefusesContradictions(t *testing.T) {
	ns := nettest.Namespace(t)
	c := dial(t, ns)
	for _, id := range []sockdiag.ListenerID{
		{},
		{Family: sockdiag.FamilyIPv4, Local: netip.MustParseAddrPort("[::1]:80")},
		{Family: sockdiag.FamilyIPv6, Local: netip.MustParseAddrPort("127.0.0.1:80")},
		{Family: sockdiag.FamilyIPv6, Local: netip.MustParseAddrPort("[fe80::1%lo]:80")},
		{Family: 1, Local: netip.MustParseAddrPort("127.0.0.1:80")},
	} {
		require.ErrorContains(t, c.Lookup(id, 0, &sockdiag.Listener{}), "invalid argument", "%v", id)
	}
}

// TestLookupEach asks for more than one send may hold, for sockets that are
// closed, and for what cannot be asked, all in one.
func TestLookupEach(t *testing.T) {
	ns := nettest.Namespace(t)
	var all []*nettest.Listener
	ns.Do(func() {
		for range 100 {
			all = append(all, nettest.Listen(t, nettest.ListenOptions{Backlog: 5}))
		}
	})
	asks := make([]sockdiag.Ask, len(all))
	for i, l := range all {
		asks[i] = sockdiag.Ask{ID: sockdiag.ListenerID{Family: sockdiag.FamilyIPv4, Local: l.Addr}, Inode: l.Inode}
	}
	all[3].Close()
	asks[5].ID.Family = 1
	asks[40].Inode++
	queue(t, ns, all[7].Addr, 2)

	c := dial(t, ns)
	for range 2 { // the module is proven by the first
		answers := make([]error, len(asks))
		seen := make([]int, len(asks))
		require.NoError(t, c.LookupEach(asks, func(i int, l *sockdiag.Listener, err error) {
			answers[i] = err
			seen[i]++
			if err == nil {
				require.Equal(t, all[i].Addr, l.Address())
				require.Equal(t, all[i].Inode, l.Inode)
				require.Equal(t, i == 7, l.RecvQ == 2)
			}
		}))
		for i, err := range answers {
			require.Equal(t, 1, seen[i], "one answer each")
			switch i {
			case 3, 40:
				require.ErrorIs(t, err, sockdiag.ErrNotFound)
			case 5:
				require.ErrorContains(t, err, "invalid argument")
			default:
				require.NoError(t, err, "%d", i)
			}
		}
	}
	require.NoError(t, c.LookupEach(nil, nil))
}

func TestFiveHundredListeners(t *testing.T) {
	ns := nettest.Namespace(t)
	want := map[uint32]netip.AddrPort{}
	ns.Do(func() {
		for range 500 {
			l := nettest.Listen(t, nettest.ListenOptions{Backlog: 5})
			want[l.Inode] = l.Addr
		}
	})
	c := dial(t, ns)
	all := listeners(t, c)
	require.Len(t, all, 500)
	for _, l := range all {
		require.Equal(t, want[l.Inode], l.Address())
		var exact sockdiag.Listener
		require.NoError(t, c.Lookup(l.ListenerID, l.Inode, &exact))
		delete(want, l.Inode)
	}
	require.Empty(t, want)
}

// TestMultipathListener: Go's net.Listen makes an MPTCP socket where the
// kernel has it. Its subflow is what listens for TCP, under the same inode.
func TestMultipathListener(t *testing.T) {
	ns := nettest.Namespace(t)
	c := dial(t, ns)
	ns.Do(func() {
		var lc net.ListenConfig
		lc.SetMultipathTCP(true)
		l, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		file, err := l.(*net.TCPListener).File()
		require.NoError(t, err)
		defer file.Close()
		fi, err := file.Stat()
		require.NoError(t, err)
		nettest.Queue(t, netip.MustParseAddrPort(l.Addr().String()), 3)
		got := listeners(t, c)
		require.Len(t, got, 1)
		require.EqualValues(t, fi.Sys().(*syscall.Stat_t).Ino, got[0].Inode)
		require.EqualValues(t, 3, got[0].RecvQ)
	})
}

func TestConnSeesItsNamespaceOnly(t *testing.T) {
	a, b := nettest.Namespace(t), nettest.Namespace(t)
	listen(t, a, nettest.ListenOptions{Backlog: 5})
	require.Len(t, listeners(t, dial(t, a)), 1)
	require.Empty(t, listeners(t, dial(t, b)))
}

// TestNobodySeesEverything: none of the requests needs a privilege, and the
// drops of another user's listener are there too.
func TestNobodySeesEverything(t *testing.T) {
	l := nettest.Listen(t, nettest.ListenOptions{Backlog: 2})
	nettest.Queue(t, l.Addr, 3)
	nobody, addr := nettest.AsNobody(t, l.Addr.String())
	if !nobody {
		return
	}
	want := netip.MustParseAddrPort(addr)
	c, err := sockdiag.Dial()
	require.NoError(t, err)
	defer c.Close()
	found := sockets(t, c, want.Port())
	require.Len(t, found, 3)
	require.True(t, found[0].HasInfo)
	for _, got := range listeners(t, c) {
		if got.Local == want {
			require.EqualValues(t, 3, got.RecvQ)
			require.True(t, got.HasDrops)
			require.NoError(t, c.Lookup(got.ListenerID, got.Inode, new(sockdiag.Listener)))
			return
		}
	}
	t.Fatal("root's listener is not in the dump")
}

func TestUseAfterClose(t *testing.T) {
	c := dial(t, nettest.Namespace(t))
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.Probe(), sockdiag.ErrClosed)
	require.ErrorIs(t, c.Close(), sockdiag.ErrClosed)
}
