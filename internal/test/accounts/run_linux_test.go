package accounts

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// shape is a load, and the server that meets it.
type shape struct {
	clients, checks int // checks are some of the clients
	spread          time.Duration
	patience        patience
	server          demo.ServerOptions
	cookies         int
	abort           bool
	veth            bool
	delay           time.Duration // of each packet of the veth, each way
	loss            float32       // percent of them, each way
	outcomes        bool          // it ends when all are known, be it that dead clients may yet be let in
	v6              bool
	twins           bool          // two servers on the port
	restartAfter    time.Duration // the server is, half a second later
	orphans         int           // tcp_orphan_retries of the clients: 0 is the default, which takes two minutes
}

func (s shape) String() string {
	where := "loopback"
	if s.veth {
		where = "veth"
	}
	if s.delay > 0 {
		where += fmt.Sprintf(" with %v and %v %% lost each way", s.delay, s.loss)
	}
	return fmt.Sprintf("%d clients (%d checks) over %v by %s, connect %v, read %v, keep %v; threads %d, maxConnections %d, acceptCount %d, %v a request; cookies %d, abort %v",
		s.clients, s.checks, s.spread, where, s.patience.connect, s.patience.read, s.patience.keep,
		s.server.MaxThreads, s.server.MaxConnections, s.server.AcceptCount, s.server.ServiceTime, s.cookies, s.abort)
}

// result is what everybody says of a run.
type result struct {
	shape   shape
	server  uint16 // its port
	clients []*client
	made    map[uint16]time.Duration // by the kernel
	began   map[uint16]time.Duration // the client's SYN, by the kernel
	opened  uint64                   // PassiveOpens
	judged  map[uint16]outcome.Judged
	worst   time.Duration // by which a delay is off
	tap     outcome.Endpoint
	lost    uint64
}

// settleMost is how long the kernels of clients that have left repeat their data.
const settleMost = 280 * time.Second

// run plays a shape.
func run(t testing.TB, s shape) *result {
	server := nettest.Namespace(t)
	crowdNS, addr := server, netip.MustParseAddr("127.0.0.1")
	if s.veth {
		crowdNS = nettest.Namespace(t)
		if addr, _ = nettest.Veth(t, server, crowdNS); s.v6 {
			addr, _ = nettest.VethIPv6(t, server, crowdNS)
		}
	}
	if s.delay > 0 {
		server.Impair(t, "veth0", s.delay, s.loss)
		crowdNS.Impair(t, "veth0", s.delay, s.loss)
		resolve(t, crowdNS, addr, 4*s.delay)
	}
	server.Sysctl(t, "net.ipv4.tcp_syncookies", strconv.Itoa(s.cookies))
	if s.abort {
		server.Sysctl(t, "net.ipv4.tcp_abort_on_overflow", "1")
	}
	crowdNS.Sysctl(t, "net.ipv4.tcp_orphan_retries", strconv.Itoa(s.orphans))
	s.server.Address = netip.AddrPortFrom(addr, nextPort()).String()
	servers := &restarted{t: t, ns: server, options: s.server, after: s.restartAfter}
	to, bounds := netip.MustParseAddrPort(s.server.Address), servers.bounds
	if s.twins {
		two := newTwins(t, server, s.server)
		bounds = two.bounds
		t.Cleanup(two.stop)
	} else {
		servers.start()
		t.Cleanup(servers.end)
	}
	kernel := newTrace(t, to.Port())
	opened := passiveOpens(t, server)
	judged := newJudgements()
	tap := openTap(t, server, judged.add, to.Port())

	before, start := opened(), monotonic()
	c := newCrowd(t, to, s.patience)
	watch := &watcher{t: t, tap: tap, opened: func() uint64 { return opened() - before }}
	watch.bounds = func() (accepted, served uint64) {
		if accepted, served = bounds(); s.checks > 0 || s.patience.half || s.patience.resets {
			return accepted, accepted // what a check leaves is room, too
		}
		return accepted, served
	}
	crowdNS.Do(func() {
		for i := range s.clients {
			c.begin(i*s.checks/max(s.clients, 1) != (i+1)*s.checks/max(s.clients, 1))
			if i%20 == 0 {
				c.step(0) // what the others received is noted in time
			}
			for until := s.spread * time.Duration(i) / time.Duration(s.clients); c.now() < until; {
				c.step(time.Millisecond)
				servers.step(c.now())
			}
		}
	})
	for c.step(10 * time.Millisecond) {
		servers.step(c.now())
		watch.look()
	}
	r := &result{shape: s, server: to.Port(), clients: c.clients}
	ended := time.Now()
	for ; time.Since(ended) < settleMost && (time.Since(ended) < time.Second || !watch.settled(s.outcomes)); time.Sleep(100 * time.Millisecond) {
		watch.look()
	}
	r.tap, r.lost, r.opened, r.judged = watch.last, watch.lost, watch.opened(), judged.all()
	if kernel != nil {
		r.made, r.began = kernel.all(start)
	}
	return r
}

// restarted is a server that is restarted once, if after is not 0.
type restarted struct {
	t       testing.TB
	ns      *nettest.NS
	options demo.ServerOptions
	after   time.Duration
	all     []*demo.Server
	stop    func()
}

func (r *restarted) start() {
	srv, _, stop := serve(r.t, r.ns, r.options)
	r.all, r.stop = append(r.all, srv), stop
}

func (r *restarted) end() {
	if r.stop != nil {
		r.stop()
	}
}

// bounds are the room, with what was accepted, or served, by now.
func (r *restarted) bounds() (accepted, served uint64) {
	queue := r.options.AcceptCount + runtime.NumCPU() // which may hold one more for each other processor
	for _, srv := range r.all {
		accepted += uint64(queue + srv.Accepted())
		served += uint64(queue + r.options.MaxConnections + srv.Stats().Served)
	}
	return accepted, served
}

// step stops it, and starts it again half a second later.
func (r *restarted) step(now time.Duration) {
	switch {
	case r.after == 0, now < r.after, len(r.all) > 1:
	case r.stop != nil:
		r.stop()
		r.stop = nil
	case now >= r.after+time.Second/2:
		r.start()
	}
}

// serve runs a server in a namespace until it is stopped.
func serve(t testing.TB, ns *nettest.NS, o demo.ServerOptions) (srv *demo.Server, to netip.AddrPort, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ns.Do(func() {
		var err error
		srv, err = demo.Listen(ctx, o)
		require.NoError(t, err)
	})
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx) }()
	return srv, srv.Address(), func() {
		cancel()
		require.NoError(t, <-served)
	}
}

var portsUsed atomic.Uint32

// nextPort is another one for each run: the trace shows the sockets of all namespaces.
func nextPort() uint16 { return uint16(10_000 + (uint32(os.Getpid())*64+portsUsed.Add(1))%20_000) }

// passiveOpens reads the namespace's counter.
func passiveOpens(t testing.TB, ns *nettest.NS) func() uint64 {
	fs := hostfs.Real(t)
	sleeper := ns.Command("sleep", "3600")
	proctest.Run(t, sleeper)
	require.Eventually(t, func() bool {
		id, err := netns.Open(netns.Path("/proc", sleeper.Process.Pid))
		if err != nil {
			return false
		}
		defer id.Close()
		here, err := netns.Open(ns.Path())
		require.NoError(t, err)
		defer here.Close()
		return id.ID() == here.ID()
	}, time.Minute, time.Millisecond)
	file, err := netstat.OpenHandshakeCounters(fs, sleeper.Process.Pid)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return func() uint64 {
		var c netstat.HandshakeCounters
		require.NoError(t, file.Read(&c))
		return c.Opened
	}
}

// openTap opens it as the agent does.
func openTap(t testing.TB, ns *nettest.NS, judged func(outcome.Judged), ports ...uint16) clients.Tap {
	fs := hostfs.Real(t)
	sleeper := ns.Command("sleep", "3600")
	proctest.Run(t, sleeper)
	here, err := netns.Open(ns.Path())
	require.NoError(t, err)
	defer here.Close()
	var tap clients.Tap
	require.Eventually(t, func() bool { // once nsenter has moved
		tap, err = clients.NewOpener("/proc", fs)(clients.Where{NetNS: uint64(here.ID()), PIDs: []int{sleeper.Process.Pid}, Ports: ports, Judged: judged})
		return err == nil
	}, time.Minute, time.Millisecond, "%v", err)
	t.Cleanup(func() { _ = tap.Close() })
	return tap
}

// watcher reads the tap, and asserts what must hold in each reading.
type watcher struct {
	t      testing.TB
	tap    clients.Tap
	bounds func() (accepted, served uint64) // the room, with what was accepted, or served, by now
	opened func() uint64
	last   outcome.Endpoint
	lost   uint64
	looked time.Time
}

func (w *watcher) look() {
	if time.Since(w.looked) < 200*time.Millisecond {
		return
	}
	r, err := w.tap.Report()
	require.NoError(w.t, err)
	w.looked, w.lost = time.Now(), r.Lost
	for _, e := range r.Endpoints {
		w.last = e
	}
	if e := &w.last; w.lost == 0 {
		accepted, served := w.bounds()
		require.LessOrEqual(w.t, e.LetIn+e.LetInLate, min(accepted, served), "let in, more than there was room for (%d accepted, %d served): %+v", accepted, served, e)
		require.LessOrEqual(w.t, e.LetIn+e.LetInLate, w.opened(), "%+v", e)
	}
}

// settled reports whether nothing is open that has yet to be decided. outcomes: but whether
// those that have left are let in.
func (w *watcher) settled(outcomes bool) bool {
	return w.last.Open()+w.last.Inside == 0 && (outcomes || w.last.Left == 0)
}
