package clients

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A socket says which segment made it, the client's bare ACK or, as that was left out (TCP_DEFER_ACCEPT), its data,
// until the server has sent something or the client has ended its side.
func TestMadeByABareACK(t *testing.T) {
	nettest.Namespace(t).Do(func() {
		open := nettest.Listen(t, nettest.ListenOptions{Backlog: 10})
		deferring := nettest.Listen(t, nettest.ListenOptions{Backlog: 10, DeferAccept: 30})
		c, err := sockdiag.Dial()
		require.NoError(t, err)
		defer c.Close()
		for _, tt := range []struct {
			name         string
			l            *nettest.Listener
			then         func(client *net.TCPConn)
			received     uint64
			bare, closed bool
		}{
			{"silent", open, func(*net.TCPConn) {}, 0, true, false},
			{"then data", open, func(client *net.TCPConn) { _, _ = client.Write([]byte("GET /")) }, 5, true, false},
			{"by data", deferring, func(client *net.TCPConn) { _, _ = client.Write([]byte("GET /")) }, 5, false, false},
			{"answered", open, func(client *net.TCPConn) {
				for _, server := range open.Accept(t, 3) { // the latest is this one's
					_, _ = server.Write([]byte("HTTP/1.1 200 OK"))
				}
				_, err := client.Read(make([]byte, 1))
				require.NoError(t, err)
			}, 0, false, false},
			{"half-closed", open, func(client *net.TCPConn) { _ = client.CloseWrite() }, 0, false, true},
		} {
			client := nettest.Queue(t, tt.l.Addr, 1)[0].(*net.TCPConn)
			tt.then(client)
			from, met := client.LocalAddr().(*net.TCPAddr).AddrPort(), sockdiag.Socket{}
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
				met, err = c.Between(tt.l.Addr, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), 1)
				require.NoError(t, err)
				if met.Info.BytesReceived >= tt.received && (met.State != sockdiag.Established) == tt.closed {
					break
				}
				require.True(t, time.Now().Before(deadline), "%s: %+v", tt.name, met)
			}
			require.Equal(t, tt.bare, found(&met).ByBareACK, "%s: %+v", tt.name, met)
		}
	})
}

// On the loopback a client's own socket says whether its process has it still, be it that it has ended its side.
func TestOwnSocketOfAClient(t *testing.T) {
	nettest.Namespace(t).Do(func() {
		here, err := netns.Open(netns.Path("/proc", unix.Gettid()))
		require.NoError(t, err)
		c, err := sockdiag.Dial()
		require.NoError(t, err)
		tap := &namespaceTap{ns: here, sockets: c}
		defer func() { require.NoError(t, tap.release()) }()
		const backlog = 4
		l := nettest.Listen(t, nettest.ListenOptions{Backlog: backlog, DeferAccept: 30})
		tests := []struct {
			name string
			ends func(client *net.TCPConn) error
			want kernel.Client
		}{
			{"open", func(*net.TCPConn) error { return nil }, kernel.ClientThere},
			{"it has ended its side", (*net.TCPConn).CloseWrite, kernel.ClientShut},
			{"it has left", (*net.TCPConn).Close, kernel.ClientLeft},
		}
		clients := nettest.Queue(t, l.Addr, len(tests))
		for _, other := range nettest.Queue(t, l.Addr, backlog+1) { // which fill the queue before them
			_, err := other.Write([]byte("GET /"))
			require.NoError(t, err)
		}
		for i, tt := range tests {
			client := clients[i].(*net.TCPConn)
			from := client.LocalAddr().(*net.TCPAddr).AddrPort()
			_, err := client.Write([]byte("GET /"))
			require.NoError(t, err)
			require.NoError(t, tt.ends(client))
			f := tap.socket(l.Addr, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), packet.Loopback)
			require.Equal(t, kernel.HalfOpenSocket, f.Socket, tt.name)
			require.Equal(t, tt.want, f.Client, tt.name)
		}
	})
}

// A forged FIN of which a connection takes no notice is a segment that came to it, unlike one that a rule has dropped.
func TestForgedFINIsASegment(t *testing.T) {
	server, far := nettest.Namespace(t), nettest.Namespace(t)
	addr, from := nettest.Veth(t, server, far)
	var client netip.AddrPort
	var l *nettest.Listener
	server.Do(func() {
		l = nettest.Listen(t, nettest.ListenOptions{Address: netip.AddrPortFrom(addr, 0).String(), Backlog: 10})
	})
	far.Do(func() {
		client = nettest.Queue(t, l.Addr, 1)[0].LocalAddr().(*net.TCPAddr).AddrPort()
		client = netip.AddrPortFrom(from, client.Port())
	})
	l.Accept(t, 1)
	ns, err := netns.Open(server.Path())
	require.NoError(t, err)
	tap := &namespaceTap{ns: ns}
	defer func() { require.NoError(t, tap.release()) }()
	look := func() kernel.Found { return tap.socket(l.Addr, client, 2) }
	const quiet = 300 * time.Millisecond
	require.Eventually(t, func() bool { return look().Unheard >= quiet }, time.Minute, 10*time.Millisecond)
	before := look()
	require.NotZero(t, before.Segments)
	far.Do(func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		require.NoError(t, err)
		defer func() { _ = unix.Close(fd) }()
		forged := nettest.TCP4(client, l.Addr, packet.FlagFIN|packet.FlagACK, 1, 1)
		require.NoError(t, unix.Sendto(fd, forged, 0, &unix.SockaddrInet4{Addr: addr.As4()}))
	})
	require.Eventually(t, func() bool { return look().Segments == before.Segments+1 }, time.Minute, 10*time.Millisecond)
	require.GreaterOrEqual(t, look().Unheard, quiet)
}

// A client that asks an address which is listened on and not there (any more) is followed like any other, unless the
// namespace may pass its packets on.
func TestFollowsAMissingAddress(t *testing.T) {
	server, far := nettest.Namespace(t), nettest.Namespace(t)
	own, _ := nettest.Veth(t, server, far)
	server.Sysctl(t, "net.ipv4.ip_nonlocal_bind", "1")
	missing := netip.MustParseAddr("203.0.113.7")
	single := netip.PrefixFrom(missing, missing.BitLen())
	ns, err := netns.Open(server.Path())
	require.NoError(t, err)
	tap := &namespaceTap{ns: ns, proc: hostfs.Real(t)}
	defer func() { require.NoError(t, tap.release()) }()
	tap.listened.Store(&[]netip.AddrPort{netip.AddrPortFrom(missing, 8080), netip.MustParseAddrPort("0.0.0.0:8081")})
	for forwards, followed := range map[string]bool{"0": true, "1": false} {
		server.Sysctl(t, "net.ipv4.ip_forward", forwards)
		got, err := tap.addresses()
		require.NoError(t, err)
		require.Contains(t, got, netip.PrefixFrom(own, own.BitLen()))
		require.Equal(t, followed, slices.Contains(got, single), "ip_forward %s: %v", forwards, got)
		require.NotContains(t, got, netip.MustParsePrefix("0.0.0.0/32"))
	}
}

// Who has a listener in a namespace may have left it for one of his own, which takes no rights. It is entered by another's process.
func TestEntersByWhoIsThere(t *testing.T) {
	nettest.Root(t)
	shared, elsewhere := nettest.Namespace(t), nettest.Namespace(t)
	start := func(ns *nettest.NS) int {
		cmd := ns.Command("sleep", "600")
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		return cmd.Process.Pid
	}
	left, there := start(elsewhere), start(shared)
	ns, err := netns.Open(shared.Path())
	require.NoError(t, err)
	w := Where{NetNS: uint64(ns.ID()), Ports: []uint16{8080}}
	require.NoError(t, ns.Close())
	open := NewOpener("/proc", hostfs.Real(t))
	for _, pids := range [][]int{{there}, {left, there}} {
		w.PIDs = pids
		var tap Tap
		require.Eventually(t, func() bool { // nsenter is there before it has entered
			tap, err = open(w)
			return err == nil
		}, time.Minute, 10*time.Millisecond, "%v", err)
		require.NoError(t, tap.Close())
	}
	w.PIDs = []int{left, 0}
	_, err = open(w)
	require.ErrorContains(t, err, "has left")
	w.PIDs = nil
	_, err = open(w)
	require.ErrorContains(t, err, "no process is known")
}

// BenchmarkAsk is the processor time of a question for a client's socket, the kernel's part included: of one that is connected, and
// of one whose connection has ended.
func BenchmarkAsk(b *testing.B) {
	nettest.Namespace(b).Do(func() {
		here, err := netns.Open(netns.Path("/proc", unix.Gettid()))
		require.NoError(b, err)
		tap := &namespaceTap{ns: here}
		defer func() { require.NoError(b, tap.release()) }()
		l := nettest.Listen(b, nettest.ListenOptions{Backlog: 4})
		client := nettest.Queue(b, l.Addr, 1)[0].LocalAddr().(*net.TCPAddr).AddrPort()
		client = netip.AddrPortFrom(client.Addr().Unmap(), client.Port())
		const other = 7 // a device: nothing is asked for the client's own socket
		for name, from := range map[string]netip.AddrPort{"connected": client, "ended": netip.AddrPortFrom(client.Addr(), 1)} {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				took, err := cputime.Of(func() error {
					for b.Loop() {
						tap.socket(l.Addr, from, other)
					}
					return nil
				})
				require.NoError(b, err)
				b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	})
}
