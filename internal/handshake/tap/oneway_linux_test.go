package tap

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// options adds what an agent gives a tap; and in a world that is one way what it needs to
// ignore outgoing packets, and to begin with that.
func (w world) options(t testing.TB, o Options) Options {
	if o.Socket == nil {
		o.Socket = socketsOf(t, w.server)
	}
	o.Trouble = func() (Trouble, error) {
		c, err := w.counters(t)
		return Trouble{Cookies: c.Cookies, Drops: c.Drops}, err
	}
	o.Dropped = droppedOfPorts(t, w.server)
	if w.oneWay {
		o.Calm = true
		o.Counters = func() (kernel.Counters, error) {
			if w.counting != nil {
				w.counting()
			}
			return w.counters(t)
		}
	}
	return o
}

func droppedOfPorts(t testing.TB, ns *nettest.NS) func() (map[uint16]uint64, error) {
	var conn *sockdiag.Conn
	ns.Do(func() {
		var err error
		conn, err = sockdiag.Dial()
		require.NoError(t, err)
	})
	t.Cleanup(func() { _ = conn.Close() })
	return func() (map[uint16]uint64, error) {
		out := make(map[uint16]uint64)
		err := conn.Listeners(func(l *sockdiag.Listener) error {
			out[l.Local.Port()] += uint64(l.Drops)
			return nil
		})
		return out, err
	}
}

func (w world) counters(t testing.TB) (c kernel.Counters, err error) {
	fs := hostfs.Real(t)
	w.server.Do(func() {
		var file *netstat.HandshakeCountersFile
		if file, err = netstat.OpenHandshakeCounters(fs, unix.Gettid()); err == nil {
			err = file.Read((*netstat.HandshakeCounters)(&c))
			_ = file.Close()
		}
	})
	return c, err
}

// isOneWay waits until outgoing packets are not read, and the kernel is known to know the
// clients by the addresses in their packets.
func isOneWay(t *testing.T, tap *Tap) {
	t.Helper()
	require.Eventually(t, func() bool {
		r, err := tap.Report()
		require.NoError(t, err)
		return r.OneWay
	}, time.Minute, 20*time.Millisecond)
}

// While nothing happens, outgoing packets stay unread, and clients of all kinds count as
// connected.
func TestOneWayCalm(t *testing.T) {
	t.Parallel()
	across(t, "IPv4", nettest.Veth, oneWayCalm)
	across(t, "IPv6", vethIPv6, oneWayCalm)
}

func oneWayCalm(t *testing.T, w world) {
	w.oneWay = true
	l := w.listen(t, 100)
	tap := w.tap(t, l.Addr.Port())
	kinds := []func(c *client, s net.Conn){
		func(*client, net.Conn) {}, // both stay
		func(c *client, _ net.Conn) { c.close() },
		func(_ *client, s net.Conn) { require.NoError(t, s.Close()) },
		func(c *client, _ net.Conn) { require.NoError(t, unix.Shutdown(c.fd, unix.SHUT_WR)) },
		func(c *client, _ net.Conn) { reset(t, c) },
	}
	const each = 20
	for _, end := range kinds {
		for range each {
			c := w.connect(t, l.Addr, 1)
			settled(t, c)
			end(c[0], l.Accept(t, 1)[0])
		}
	}
	n := uint64(len(kinds) * each)
	e := decided(t, tap, l.Addr, n)
	require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: n}, e.Clients)
	require.Zero(t, e.Untracked)
	r, err := tap.Report()
	require.NoError(t, err)
	require.True(t, r.OneWay)
}

// reset closes a client by a RST.
func reset(t *testing.T, c *client) {
	require.NoError(t, unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
	c.close()
}

// known is a listener and its tap, which has seen that the kernel knows a client: one that
// has come, and stays.
func (w world) known(t *testing.T) (*nettest.Listener, *Tap) {
	l := w.listen(t, 200)
	tap := w.tap(t, l.Addr.Port())
	settled(t, w.connect(t, l.Addr, 1))
	l.Accept(t, 1)
	decided(t, tap, l.Addr, 1)
	return l, tap
}

// A server that stops while all is calm: those that it had let in are connected, those
// that come afterwards refused, each of them.
func TestOneWayStop(t *testing.T) {
	t.Parallel()
	acrossOneWay(t, func(t *testing.T, w world) {
		l, tap := w.known(t)
		const in, out = 150, 250
		clients := w.connect(t, l.Addr, in)
		settled(t, clients)
		for i, s := range l.Accept(t, in) {
			switch i % 3 { // the others stay
			case 0:
				clients[i].close()
			case 1:
				require.NoError(t, s.Close())
			}
		}
		l.Close()
		_, failed := settled(t, w.connect(t, l.Addr, out))
		require.EqualValues(t, out, failed[unix.ECONNREFUSED])
		e := decided(t, tap, l.Addr, 1+in+out)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1 + in, outcome.Refused: out}, e.Clients)
		require.Zero(t, e.Untracked)
	})
}

// The same while the tap is about to read the counters: they show the RSTs, and what came
// before it began to read them does not.
func TestOneWayStopWhileCounting(t *testing.T) {
	t.Parallel()
	acrossOneWay(t, func(t *testing.T, w world) {
		turn := make(chan struct{})
		defer close(turn)
		w.counting = func() {
			select {
			case <-turn:
				<-turn
			default:
			}
		}
		l, tap := w.known(t)
		const out = 20
		settled(t, w.connect(t, l.Addr, 1)) // and as it stays the counters are read
		l.Accept(t, 1)
		l.Close()
		turn <- struct{}{}
		_, failed := settled(t, w.connect(t, l.Addr, out))
		require.EqualValues(t, out, failed[unix.ECONNREFUSED])
		turn <- struct{}{}
		e := decided(t, tap, l.Addr, 1+1+out)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1 + 1, outcome.Refused: out}, e.Clients)
		require.Zero(t, e.Untracked)
	})
}

// What no counter shows: packets dropped by a filter (as netfilter does). Their clients
// have given up, and outgoing packets are read for long.
func TestOneWaySilentDrops(t *testing.T) {
	t.Parallel()
	acrossOneWay(t, func(t *testing.T, w world) {
		l, tap := w.known(t)
		drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
		require.NoError(t, unix.SetsockoptSockFprog(int(l.File(t).Fd()), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: 1, Filter: &drop[0]}))
		const clients = 30
		for _, c := range w.connect(t, l.Addr, clients) {
			c.close() // after a single SYN
		}
		e := decided(t, tap, l.Addr, 1+clients)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1, outcome.GaveUp: clients}, e.Clients)
		require.Zero(t, e.Untracked)
		time.Sleep(2 * calmFor)
		r, err := tap.Report()
		require.NoError(t, err)
		require.False(t, r.OneWay)
	})
}

// RSTs that answer segments of no followed port are no reason to read what is sent; those
// that refuse clients are, and each of these is known.
func TestOneWayStrayResets(t *testing.T) {
	t.Parallel()
	acrossOneWay(t, func(t *testing.T, w world) {
		l, tap := w.known(t)
		closed := netip.AddrPortFrom(w.addr, 1)
		const turns, each = 25, 8
		for turn := range turns {
			_, failed := settled(t, w.connect(t, closed, 1))
			require.EqualValues(t, 1, failed[unix.ECONNREFUSED])
			clients := w.connect(t, l.Addr, each)
			settled(t, clients)
			for i, s := range l.Accept(t, each) {
				if (i+turn)%4 != 0 { // a few stay
					clients[i].close()
					require.NoError(t, s.Close())
				}
			}
			time.Sleep(100 * time.Millisecond)
			r, err := tap.Report()
			require.NoError(t, err)
			require.True(t, r.OneWay, "%d", turn)
		}
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1 + turns*each}, decided(t, tap, l.Addr, 1+turns*each).Clients)
		l.Close()
		const out = 40
		_, failed := settled(t, w.connect(t, l.Addr, out))
		require.EqualValues(t, out, failed[unix.ECONNREFUSED])
		e := decided(t, tap, l.Addr, 1+turns*each+out)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1 + turns*each, outcome.Refused: out}, e.Clients)
		require.Zero(t, e.Untracked)
	})
}

// Clients that never answer their SYN-ACK.
func TestOneWayHalfOpen(t *testing.T) {
	t.Parallel()
	acrossOneWay(t, func(t *testing.T, w world) {
		l, tap := w.known(t)
		w.server.Sysctl(t, "net.ipv4.tcp_synack_retries", "2") // soon over
		const clients = 50
		w.clients.Do(func() { nettest.HalfOpen(t, l.Addr, 1, clients) })
		e := decided(t, tap, l.Addr, 1+clients)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1, outcome.HalfOpen: clients}, e.Clients)
		require.Zero(t, e.Untracked)
	})
}

// Outgoing packets are read unless many are sent, and for some time after anything has
// happened.
func TestLongOneWayByNeed(t *testing.T) {
	t.Parallel()
	across(t, "veth", nettest.Veth, func(t *testing.T, w world) {
		w.oneWay = true
		l := w.listen(t, 200)
		o := w.options(t, Options{Ports: []uint16{l.Addr.Port()}})
		o.Calm = false
		var tap *Tap
		w.server.Do(func() {
			var err error
			tap, err = Open(o)
			require.NoError(t, err)
		})
		t.Cleanup(func() { _ = tap.Close() })
		is := func(want bool) {
			t.Helper()
			require.Eventually(t, func() bool {
				r, err := tap.Report()
				require.NoError(t, err)
				return r.OneWay == want
			}, 90*time.Second, 50*time.Millisecond)
		}
		time.Sleep(2 * calmFor)
		is(false) // nothing is sent
		stop := w.chatter(t)
		is(true)
		tap.Alert()
		is(false)
		is(true)
		l.Close()
		_, failed := settled(t, w.connect(t, l.Addr, 1))
		require.EqualValues(t, 1, failed[unix.ECONNREFUSED])
		is(false)
		is(true)
		stop()
		is(false)
		e := decided(t, tap, l.Addr, 1)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Refused: 1}, e.Clients)
	})
}

// chatter sends many small segments within the server's namespace until it is stopped.
func (w world) chatter(t *testing.T) (stop func()) {
	other := world{server: w.server, clients: w.server, addr: netip.MustParseAddr("127.0.0.1")}
	l := other.listen(t, 5)
	c := other.connect(t, l.Addr, 1)
	settled(t, c)
	s := l.Accept(t, 1)[0]
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 1)
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := unix.Write(c[0].fd, b); err != nil {
				return
			}
			if _, err := s.Read(b); err != nil {
				return
			}
			if _, err := s.Write(b); err != nil {
				return
			}
			for {
				if _, err := unix.Read(c[0].fd, b); err == nil {
					break
				}
			}
		}
	}()
	var once sync.Once
	stop = func() { once.Do(func() { close(done); <-ended }) }
	t.Cleanup(stop)
	return stop
}

// Many that are all let in, as fast as they can, beside a RST to others now and then: each
// is connected, and outgoing packets stay unread.
func TestLongOneWayMany(t *testing.T) {
	t.Parallel()
	try := func(t *testing.T, w world) {
		w.server.Sysctl(t, "net.core.somaxconn", "4096")
		open := w.listen(t, 4096)
		closed := netip.AddrPortFrom(w.addr, 1)
		tap := w.tap(t, open.Addr.Port())
		go acceptAll(open.File(t))
		const n = 12_000 // no port is used again, or a SYN could meet what is left of the one before
		w.clients.Do(func() {
			for i := range n {
				if i%500 == 0 { // as in TestManyClients
					one(t, closed, false)
					r, err := tap.Report()
					require.NoError(t, err)
					require.True(t, r.OneWay, "%d", i)
				}
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				require.NoError(t, err)
				require.NoError(t, unix.Connect(fd, sockaddrOf(open.Addr)))
				require.NoError(t, unix.Close(fd))
			}
		})
		e := decided(t, tap, open.Addr, n)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: n}, e.Clients)
		require.Zero(t, e.Untracked)
	}
	acrossOneWay(t, try)
}

// lateness is how many of the clients that come right after each other this machine may have had wait for their
// handshake: of one that ends late, or has the next one begin late, the SYN-ACK or the ACK may have been.
type lateness struct {
	at    time.Time
	count uint64
}

func (l *lateness) begin() { l.at = time.Now() }

func (l *lateness) ended() {
	now := time.Now()
	if now.Sub(l.at) >= 100*time.Millisecond {
		l.count += 2
	}
	l.at = now
}

// In and out of it, again and again: a listener that takes all, one that is full, a port
// without one. Clients count themselves, but for who had to wait where nothing is dropped: that is this machine's doing, and
// what comes late may seem so to one end alone.
func TestLongOneWayTurns(t *testing.T) {
	t.Parallel()
	acrossOneWay(t, func(t *testing.T, w world) {
		w.server.Sysctl(t, "net.core.somaxconn", "4096")
		open, full := w.listen(t, 4096), w.listen(t, 0)
		closed := netip.AddrPortFrom(w.addr, 1)
		settled(t, w.connect(t, full.Addr, 1))
		tap := w.tap(t, open.Addr.Port(), full.Addr.Port(), closed.Port())
		go acceptAll(open.File(t))
		stay := w.connect(t, open.Addr, 1) // acceptAll closes it; this end does not
		settled(t, stay)
		drops, repeats := w.listenDrops(t), w.synRepeats(t)
		var late lateness
		want := map[netip.AddrPort][outcome.NumOutcomes]uint64{open.Addr: {outcome.Connected: 1}}
		targets := []netip.AddrPort{open.Addr, full.Addr, closed}
		const turns, each = 12, 600
		for turn := range turns {
			isOneWay(t, tap)
			w.clients.Do(func() {
				late.begin()
				for i := range each {
					to := open.Addr
					if i >= each/2 {
						to = targets[(i+turn)%3]
					}
					if only := turn % 4; only < 3 && i >= each/2 {
						to = targets[only]
					}
					counts := want[to]
					counts[one(t, to, to == full.Addr)]++
					want[to] = counts
					late.ended()
				}
			})
		}
		t.Logf("of %v this machine had up to %d wait", want, late.count)
		unanswered := uint64(0)
		for to, counts := range want {
			got := decided(t, tap, to, sumOf(counts))
			unanswered += got.Unanswered
			require.Zero(t, got.Untracked, "%v", to)
			few := late.count + w.synRepeats(t) - repeats + counts[outcome.Connected]/1000 // a packet may wait while the clients go on
			require.LessOrEqual(t, got.Clients[outcome.Delayed], few, "%v: %v", to, got.Clients)
			for _, clients := range []*[outcome.NumOutcomes]uint64{&counts, &got.Clients} {
				clients[outcome.Connected] += clients[outcome.Delayed]
				clients[outcome.Delayed] = 0
			}
			require.Equal(t, counts, got.Clients, "%v", to)
		}
		require.Equal(t, w.listenDrops(t)-drops, unanswered)
	})
}

// synRepeats are the SYNs and SYN-ACKs that the server's kernel has repeated.
func (w world) synRepeats(t *testing.T) (n uint64) {
	w.server.Do(func() { n = nettest.TCPExt(t)("TCPSynRetrans") })
	return n
}
