package tap

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake"
	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// settled waits for connect(2) of all, and counts what came of it.
func settled(t *testing.T, clients []*client) (connected uint64, failed map[error]uint64) {
	t.Helper()
	failed = make(map[error]uint64)
	for _, c := range clients {
		var in bool
		var err error
		require.Eventually(t, func() bool {
			in, err = c.state(t)
			return in || err != nil
		}, time.Minute, time.Millisecond)
		if in {
			connected++
		} else {
			failed[err]++
		}
	}
	return connected, failed
}

// A port on which nothing listens.
func TestRefused(t *testing.T) {
	worlds(t, func(t *testing.T, w world) {
		const clients = 300
		closed := netip.AddrPortFrom(w.addr, 8080)
		tap := w.tap(t, 8080)
		connected, failed := settled(t, w.connect(t, closed, clients))
		require.Zero(t, connected)
		require.EqualValues(t, clients, failed[unix.ECONNREFUSED])
		e := decided(t, tap, closed, clients)
		require.EqualValues(t, clients, e.Clients[outcome.Refused])
		require.EqualValues(t, clients, e.Balancer.Clients, "one address with 300 ports")
	})
}

// The filter knows where TCP begins behind most IPv4 headers, but not behind those with options.
func TestIPv4Options(t *testing.T) {
	t.Parallel()
	try := func(t *testing.T, w world) {
		l := w.listen(t, 100)
		closed := netip.AddrPortFrom(w.addr, 1)
		tap := w.tap(t, l.Addr.Port(), closed.Port())
		const each = 20
		w.clients.Do(func() {
			for range each {
				for _, to := range []netip.AddrPort{l.Addr, closed} {
					c := newClient(t, to)
					require.NoError(t, unix.SetsockoptString(c.fd, unix.IPPROTO_IP, unix.IP_OPTIONS, "\x01\x01\x01\x00")) // three of no operation, and the end
					c.begin(to)
					settled(t, []*client{c})
					c.close()
				}
			}
		})
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: each}, decided(t, tap, l.Addr, each).Clients)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Refused: each}, decided(t, tap, closed, each).Clients)
	}
	on(t, "loopback", "127.0.0.1", try)
	across(t, "veth", nettest.Veth, try)
	acrossOneWay(t, try)
}

// The queue is full when they come, and has room when they ask again after a
// second.
func TestDelayed(t *testing.T) {
	worlds(t, func(t *testing.T, w world) {
		l := w.listen(t, 5)
		tap := w.tap(t, l.Addr.Port())
		settled(t, w.connect(t, l.Addr, 6))
		start := time.Now()
		late := w.connect(t, l.Addr, 4)
		for _, c := range late {
			in, _ := c.state(t)
			require.False(t, in, "the queue holds six")
		}
		l.Accept(t, 6)
		connected, _ := settled(t, late)
		took := time.Since(start)
		require.EqualValues(t, 4, connected)
		e := decided(t, tap, l.Addr, 10)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 6, outcome.Delayed: 4}, e.Clients)
		require.EqualValues(t, 4, e.Delays.Count)
		require.Greater(t, e.Delays.Sum, 4*.9, "a SYN is repeated after a second")
		require.Less(t, e.Delays.Sum, 4*(took.Seconds()+.02))
	})
}

// Clients that wait before a full queue repeat their SYNs at the same moment, and
// at last get in together or give up: each SYN that the kernel dropped is one of
// theirs.
func TestConservation(t *testing.T) {
	worlds(t, func(t *testing.T, w world) {
		const inside, patient, impatient = 31, 30, 20
		l := w.listen(t, inside-1)
		tap := w.tap(t, l.Addr.Port())
		settled(t, w.connect(t, l.Addr, inside))
		drops := w.listenDrops(t)
		leaving, late := w.connect(t, l.Addr, impatient), w.connect(t, l.Addr, patient)
		require.Eventually(t, func() bool {
			return w.listenDrops(t) >= drops+2*(patient+impatient)
		}, 60*time.Second, 10*time.Millisecond, "all have repeated their SYN")
		for _, c := range leaving {
			c.close()
		}
		l.Accept(t, inside)
		in, _ := settled(t, late)
		require.EqualValues(t, patient, in)
		e := decided(t, tap, l.Addr, inside+patient+impatient)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: inside, outcome.Delayed: patient, outcome.GaveUp: impatient}, e.Clients)
		require.Equal(t, w.listenDrops(t)-drops, e.Unanswered)
	})
}

// dropped makes clients whose ACK the kernel drops at a full queue.
// TCP_DEFER_ACCEPT leaves them half-open while others fill it: the kernel
// repeats its SYN-ACK after a second, and their answer is the ACK that counts.
func dropped(t *testing.T, w world) (l *nettest.Listener, tap *Tap, clients []*client) {
	w.server.Sysctl(t, "net.ipv4.tcp_synack_retries", "2")
	return droppedOf(t, w, 4, handshake.Options{SynAckRetries: 2})
}

// backlog of the listener of droppedOf; one more fits in.
const backlog = 10

// droppedOf is dropped with another number of clients.
func droppedOf(t *testing.T, w world, deferred int, o handshake.Options) (l *nettest.Listener, tap *Tap, clients []*client) {
	w.server.Do(func() {
		l = nettest.Listen(t, nettest.ListenOptions{
			Address: netip.AddrPortFrom(w.addr, 0).String(), Backlog: backlog, DeferAccept: 1,
		})
		var err error
		tap, err = Open(w.options(t, Options{Ports: []uint16{l.Addr.Port()}, Options: o}))
		require.NoError(t, err)
	})
	t.Cleanup(func() { _ = tap.Close() })
	start := time.Now()
	clients = w.connect(t, l.Addr, deferred)
	fill := w.connect(t, l.Addr, backlog+1)
	in, _ := settled(t, append(slices.Clone(clients), fill...))
	require.EqualValues(t, deferred+backlog+1, in, "all believe that they are connected")
	for _, c := range fill {
		_, err := unix.Write(c.fd, []byte("x"))
		require.NoError(t, err)
	}
	if time.Since(start) > 900*time.Millisecond {
		t.Skip("this machine stood still for a second: the SYN-ACKs were repeated before the queue was full")
	}
	return l, tap, clients
}

func TestStalled(t *testing.T) {
	twoWorlds(t, func(t *testing.T, w world) {
		l, tap, clients := dropped(t, w)
		e := decided(t, tap, l.Addr, 15)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 11, outcome.Stalled: 4}, e.Clients)
		for _, c := range clients {
			in, err := c.state(t)
			require.True(t, in, "it still believes: %v", err)
		}
	})
}

// With half-open clients for more than half of the backlog the kernel repeats a SYN-ACK
// twice, and three times by its sysctl.
func TestStalledSooner(t *testing.T) {
	twoWorlds(t, func(t *testing.T, w world) {
		const deferred = 8
		w.server.Sysctl(t, "net.ipv4.tcp_synack_retries", "3")
		l, tap, _ := droppedOf(t, w, deferred, handshake.Options{SynAckRetries: 3})
		e := decided(t, tap, l.Addr, deferred+backlog+1)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: backlog + 1, outcome.Stalled: deferred}, e.Clients)
	})
}

// As before, but they are let in by their second ACK: the connection says so.
func TestLetInLater(t *testing.T) {
	twoWorlds(t, func(t *testing.T, w world) {
		const deferred = 4
		w.server.Sysctl(t, "net.ipv4.tcp_synack_retries", "1")
		l, tap, _ := droppedOf(t, w, deferred, handshake.Options{SynAckRetries: 1})
		l.Accept(t, backlog+1)
		e := decided(t, tap, l.Addr, deferred+backlog+1)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: backlog + 1, outcome.Delayed: deferred}, e.Clients)
	})
}

// socketsOf asks a namespace for its sockets.
func socketsOf(t testing.TB, ns *nettest.NS) func(server, client netip.AddrPort, device uint32) kernel.Found {
	var conn *sockdiag.Conn
	ns.Do(func() {
		var err error
		conn, err = sockdiag.Dial()
		require.NoError(t, err)
	})
	t.Cleanup(func() { _ = conn.Close() })
	return func(server, client netip.AddrPort, device uint32) kernel.Found {
		met, err := conn.Between(server, client, device)
		switch {
		case err != nil || met.State == sockdiag.TimeWait:
			return kernel.Found{}
		case met.State == 0:
			return kernel.Found{Socket: kernel.NoSocket}
		case met.State == sockdiag.Listen:
			return kernel.Found{Socket: kernel.OnlyListener}
		case met.State == sockdiag.SynRecv:
			return kernel.Found{Socket: kernel.HalfOpenSocket}
		}
		i := met.Info
		return kernel.Found{
			Socket: kernel.Connection, HasInfo: met.HasInfo, Sent: i.BytesSent, Received: i.BytesReceived, Quiet: i.LastDataSent,
			ByBareACK: met.State == sockdiag.Established && i.BytesSent == 0 && i.SegsIn > 1+i.DataSegsIn,
		}
	}
}

// As before, but the queue is emptied before the SYN-ACK is repeated.
func TestDelayedByItsAck(t *testing.T) {
	twoWorlds(t, func(t *testing.T, w world) {
		l, tap, _ := dropped(t, w)
		l.Accept(t, 11)
		e := decided(t, tap, l.Addr, 15)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 11, outcome.Delayed: 4}, e.Clients)
		require.GreaterOrEqual(t, e.Delays.Sum, 4*.9, "a SYN-ACK is repeated after a second")
	})
}

func TestAbortOnOverflow(t *testing.T) {
	twoWorlds(t, func(t *testing.T, w world) {
		w.server.Sysctl(t, "net.ipv4.tcp_abort_on_overflow", "1")
		l, tap, clients := dropped(t, w)
		e := decided(t, tap, l.Addr, 15)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 11, outcome.Reset: 4}, e.Clients)
		for _, c := range clients {
			_, err := c.state(t)
			require.ErrorIs(t, err, unix.ECONNRESET)
		}
	})
}

// A listener closes with clients in its queue, one of two on the port
// (SO_REUSEPORT) stays, then nothing listens, then something does again.
func TestRestart(t *testing.T) {
	worlds(t, func(t *testing.T, w world) {
		listen := func(addr netip.AddrPort) (l *nettest.Listener) {
			w.server.Do(func() {
				l = nettest.Listen(t, nettest.ListenOptions{Address: addr.String(), Backlog: 50, ReusePort: true})
			})
			return l
		}
		first := listen(netip.AddrPortFrom(w.addr, 0))
		second := listen(first.Addr)
		tap := w.tap(t, first.Addr.Port())
		start := time.Now()
		queued := w.connect(t, first.Addr, 40)
		settled(t, queued)
		first.Close()
		if time.Since(start) > time.Second {
			t.Skip("this machine stood still for a second: the clients count as connected by now")
		}
		reset := uint64(0)
		for _, c := range queued {
			if _, err := c.state(t); errors.Is(err, unix.ECONNRESET) {
				reset++
			}
		}
		settled(t, w.connect(t, first.Addr, 10))
		want := [outcome.NumOutcomes]uint64{outcome.Connected: 50 - reset, outcome.Reset: reset}
		require.NotZero(t, reset)
		n := uint64(50)
		if w.oneWay { // the RSTs were not read, and another listener is left: before a response, or after
			n, want[outcome.Reset] = 50-reset, 0
			require.Eventually(t, func() bool { return countedAt(t, tap, first.Addr).Untracked == reset }, time.Minute, 50*time.Millisecond)
		}
		require.Equal(t, want, decided(t, tap, first.Addr, n).Clients)

		second.Close()
		_, failed := settled(t, w.connect(t, first.Addr, 7))
		require.EqualValues(t, 7, failed[unix.ECONNREFUSED])
		listen(first.Addr)
		settled(t, w.connect(t, first.Addr, 3))
		want[outcome.Refused], want[outcome.Connected] = 7, want[outcome.Connected]+3
		require.Equal(t, want, decided(t, tap, first.Addr, n+10).Clients)
	})
}

// The same client port, again and again within a second.
func TestPortsUsedAgain(t *testing.T) {
	twoWorlds(t, func(t *testing.T, w world) {
		l := w.listen(t, 50)
		tap := w.tap(t, l.Addr.Port())
		var local unix.Sockaddr
		for range 20 {
			w.clients.Do(func() {
				c := dial(t, local, l.Addr)
				settled(t, []*client{c})
				var err error
				local, err = unix.Getsockname(c.fd)
				require.NoError(t, err)
				require.NoError(t, unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
				c.close() // RST: nothing stays of it
			})
		}
		e := decided(t, tap, l.Addr, 20)
		require.EqualValues(t, 20, e.Clients[outcome.Connected], "%v", e.Clients)
	})
}

// TCP Fast Open without a cookie (RFC 7413): the request is in the SYN.
func TestFastOpen(t *testing.T) {
	twoWorlds(t, func(t *testing.T, w world) {
		const serverClientNoCookie = "1543" // 0x607, ip-sysctl: tcp_fastopen
		w.server.Sysctl(t, "net.ipv4.tcp_fastopen", serverClientNoCookie)
		w.clients.Sysctl(t, "net.ipv4.tcp_fastopen", serverClientNoCookie)
		l := w.listen(t, 50)
		file := l.File(t)
		defer file.Close()
		require.NoError(t, unix.SetsockoptInt(int(file.Fd()), unix.IPPROTO_TCP, unix.TCP_FASTOPEN, 20))
		tap := w.tap(t, l.Addr.Port())
		w.clients.Do(func() {
			for range 5 {
				fd := newClient(t, l.Addr).fd
				require.NoError(t, unix.Sendto(fd, []byte("GET / HTTP/1.1\r\n\r\n"), unix.MSG_FASTOPEN, sockaddrOf(l.Addr)))
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 20_000) // the SYN-ACK says what was taken
				require.NoError(t, err)
				require.Equal(t, 1, n)
				info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
				require.NoError(t, err)
				const synData = 0x20 // TCPI_OPT_SYN_DATA
				require.NotZero(t, info.Options&synData, "the data was taken with the SYN")
			}
		})
		clients := decided(t, tap, l.Addr, 5).Clients
		require.EqualValues(t, 5, clients[outcome.Connected]+clients[outcome.Delayed], "a loaded machine may be late: %v", clients)
	})
}

// The ports can be changed while the tap is open.
func TestPortsChange(t *testing.T) {
	t.Parallel()
	ns := nettest.Namespace(t)
	w := world{server: ns, clients: ns, addr: netip.MustParseAddr("127.0.0.1")}
	tap := w.tap(t, 1)
	first, second := netip.AddrPortFrom(w.addr, 8080), netip.AddrPortFrom(w.addr, 8081)
	settled(t, w.connect(t, first, 5))
	require.NoError(t, tap.SetPorts([]uint16{8080}))
	settled(t, w.connect(t, second, 5))
	settled(t, w.connect(t, first, 3))
	decided(t, tap, first, 3)
	many := []uint16{8081}
	for p := range uint16(packet.MaxFiltered) {
		many = append(many, 9000+p)
	}
	for i, ports := range [][]uint16{many[:packet.MaxFiltered], many} { // as many as the filter compares, and more
		require.NoError(t, tap.SetPorts(ports))
		settled(t, w.connect(t, first, 5))
		settled(t, w.connect(t, second, 4))
		decided(t, tap, second, 4*uint64(i+1))
	}
}

// A small ring gives way to a large one as soon as many packets come, and that to
// a small one when they have ended. No client is missed, and none counted twice.
func TestRingFits(t *testing.T) {
	t.Parallel()
	ns := nettest.Namespace(t)
	w := world{server: ns, clients: ns, addr: netip.MustParseAddr("127.0.0.1")}
	inside := func(do func() error) (err error) {
		ns.Do(func() { err = do() })
		return err
	}
	var tap *Tap
	require.NoError(t, inside(func() (err error) {
		tap, err = Open(Options{Ports: []uint16{8080}, Inside: inside})
		return err
	}))
	defer tap.Close()
	to := netip.AddrPortFrom(w.addr, 8080)
	const burst = 60 // 120 packets; the small ring holds 400
	clients := uint64(0)
	until := func(s size) {
		require.Eventually(t, func() bool {
			settled(t, w.connect(t, to, burst))
			clients += burst
			_, err := tap.Report()
			require.NoError(t, err)
			tap.mu.Lock()
			defer tap.mu.Unlock()
			return tap.ring.size == s && tap.fit.retiring == nil
		}, 60*time.Second, time.Millisecond)
	}
	require.Equal(t, small(), tap.ring.size)
	until(large())
	tap.mu.Lock()
	tap.fit.busyAt -= calmAfter // a minute passes
	tap.ring.busy = false
	tap.mu.Unlock()
	require.Eventually(t, func() bool {
		_, err := tap.Report()
		require.NoError(t, err)
		tap.mu.Lock()
		defer tap.mu.Unlock()
		tap.fit.busyAt -= calmAfter
		return tap.ring.size == small() && tap.fit.retiring == nil
	}, 60*time.Second, 10*time.Millisecond)
	until(large())
	// A machine that is busy meanwhile loses packets of the small ring: a client
	// each at most.
	require.Eventually(t, func() bool {
		r, err := tap.Report()
		require.NoError(t, err)
		refused := uint64(0)
		for _, e := range r.Endpoints {
			refused += e.Clients[outcome.Refused]
		}
		require.LessOrEqual(t, refused, clients)
		return refused+r.Lost >= clients
	}, time.Minute, 50*time.Millisecond)
}

func TestNeedsCapNetRaw(t *testing.T) {
	if nobody, _ := nettest.AsNobody(t, ""); !nobody {
		return
	}
	_, err := Open(Options{Ports: []uint16{8080}})
	require.ErrorIs(t, err, os.ErrPermission)
}

func TestClose(t *testing.T) {
	ns := nettest.Namespace(t)
	tap := world{server: ns, clients: ns, addr: netip.MustParseAddr("127.0.0.1")}.tap(t, 8080)
	require.NoError(t, tap.Close())
	require.ErrorIs(t, tap.Close(), ErrClosed)
	_, err := tap.Report()
	require.ErrorIs(t, err, ErrClosed)
}
