package schedule

import (
	"context"
	"math"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// lab is a namespace with a sampler that looks into it, driven by hand.
type lab struct {
	*nettest.NS
	pid int // a process inside
	*Scheduler
	faults *faults
}

func newLab(t testing.TB, change func(*Options)) *lab {
	t.Helper()
	l := &lab{faults: newFaults()}
	l.NS, l.pid = namespaceWithProcess(t)
	l.Scheduler = l.sampler(t, change)
	return l
}

// namespaceWithProcess makes a namespace and a process in it, by which the
// sampler finds it.
func namespaceWithProcess(t testing.TB) (ns *nettest.NS, pid int) {
	t.Helper()
	ns = nettest.Namespace(t)
	inside := ns.Command("sleep", "300")
	proctest.Run(t, inside)
	pid = inside.Process.Pid
	require.Eventually(t, func() bool { // nsenter is still on its way
		comm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		return err == nil && string(comm) == "sleep\n"
	}, time.Minute, time.Millisecond)
	return ns, pid
}

func (l *lab) sampler(t testing.TB, change func(*Options)) *Scheduler {
	t.Helper()
	if l.faults == nil {
		l.faults = newFaults()
	}
	proc := hostfs.Real(t)
	opt := Defaults()
	opt.Inside, opt.All = []int{l.pid}, true
	if change != nil {
		change(&opt)
	}
	s, err := New(l.faults.into(Sources{Sources: watchlist.Sources{Mount: "/proc", Proc: proc, Owners: owner.New(proc), Discovery: discovery.NewDiscoverer(proc)}}), opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func (l *lab) listen(t testing.TB, o nettest.ListenOptions) (out *nettest.Listener) {
	t.Helper()
	l.Do(func() { out = nettest.Listen(t, o) })
	return out
}

func (l *lab) overflow(t testing.TB, addr netip.AddrPort, n int) {
	t.Helper()
	l.Do(func() { nettest.Overflow(t, addr, n) })
}

func (l *lab) queue(t testing.TB, addr netip.AddrPort, n int) {
	t.Helper()
	l.Do(func() { nettest.Queue(t, addr, n) })
}

// scan scans and returns the snapshot.
func (l *lab) scan(t testing.TB) *model.Snapshot {
	t.Helper()
	require.NoError(t, l.Scan(context.Background()))
	return l.Snapshot()
}

func only(t *testing.T, s *model.Snapshot) *model.Listener {
	t.Helper()
	require.Len(t, s.Listeners, 1)
	return &s.Listeners[0]
}

func TestStuckListener(t *testing.T) {
	l := newLab(t, nil)
	server := l.listen(t, nettest.ListenOptions{Backlog: 5})
	first := only(t, l.scan(t))
	require.Nil(t, first.Losses, "one look knows no losses")
	require.Nil(t, first.AcceptQueue.Peak)

	l.queue(t, server.Addr, 6)
	l.overflow(t, server.Addr, 20)
	l.Sample()
	snap := l.scan(t)
	got := only(t, snap)
	require.Equal(t, server.Addr, got.ID.Address)
	require.Equal(t, server.Inode, got.Inode)
	require.Equal(t, os.Getpid(), got.Process.PID)
	require.Equal(t, 6, got.AcceptQueue.Length)
	require.Equal(t, 5, got.AcceptQueue.Limit)
	require.True(t, got.AcceptQueue.Full())
	require.Equal(t, 6, *got.AcceptQueue.Peak)
	require.NotNil(t, got.AcceptQueue.OldestWait)
	require.Zero(t, got.Connections.Accepted, "queued connections are not accepted ones")
	require.EqualValues(t, 20, got.Losses.DroppedPackets)
	require.EqualValues(t, 20, snap.NetNS[0].Delta["ListenDrops"])
	require.Equal(t, model.StatusLosing, got.Verdict.Status)
}

// Everything that the kernel drops in the namespace is on somebody's account,
// through restarts of a listener and a stall of the sampler.
func TestConservation(t *testing.T) {
	l := newLab(t, nil)
	a := l.listen(t, nettest.ListenOptions{Backlog: 1})
	b := l.listen(t, nettest.ListenOptions{Backlog: 2})
	l.scan(t)
	fill := func(s *nettest.Listener, n int) {
		l.queue(t, s.Addr, n)
		l.overflow(t, s.Addr, 100)
	}
	fill(a, 2)
	l.Sample()
	fill(b, 3)
	l.overflow(t, a.Addr, 50)
	l.Sample()
	l.scan(t)
	// a restarts on the same port while drops continue
	a.Close()
	a = l.listen(t, nettest.ListenOptions{Address: a.Addr.String(), Backlog: 1})
	fill(a, 2)
	l.overflow(t, b.Addr, 70) // nobody samples meanwhile
	l.scan(t)
	snap := l.scan(t)

	var attributed uint64
	byPort := make(map[uint16]uint64)
	for i := range snap.Listeners {
		for _, n := range snap.Listeners[i].Totals.Dropped {
			attributed += n
			byPort[snap.Listeners[i].Port] += n
		}
	}
	kernel := snap.NetNS[0].Delta["ListenDrops"]
	require.EqualValues(t, 100+100+50+100+70, kernel, "the kernel counted what was sent")
	require.Equal(t, kernel, attributed+snap.NetNS[0].Unattributed)
	require.Zero(t, snap.NetNS[0].Unattributed)
	require.EqualValues(t, 250, byPort[a.Addr.Port()], "the counter survives the restart")
	require.EqualValues(t, 170, byPort[b.Addr.Port()])
}

func TestListenerThatClosesWithClientsQueued(t *testing.T) {
	var port uint16
	l := newLab(t, nil)
	server := l.listen(t, nettest.ListenOptions{Backlog: 5})
	port = server.Addr.Port()
	s := l.sampler(t, func(o *Options) { o.Ports, o.All = []uint16{port}, false })
	l.Scheduler = s
	l.scan(t)
	l.queue(t, server.Addr, 4)
	l.Sample()
	server.Close()
	l.Sample()
	snap := l.scan(t)
	got := only(t, snap)
	require.False(t, got.Listening())
	require.EqualValues(t, 4, got.Losses.QueueResets)
	require.Equal(t, model.StatusDown, got.Verdict.Status)
	require.Equal(t, []model.Target{{Port: port, NetNS: got.ID.NetNS}}, snap.Targets)
	require.Len(t, snap.Retired, 1)
	require.EqualValues(t, 4, snap.Retired[0].Totals.QueueResets, "the totals stay")

	l.listen(t, nettest.ListenOptions{Address: server.Addr.String(), Backlog: 5})
	snap = l.scan(t)
	require.EqualValues(t, 4, only(t, snap).Totals.QueueResets, "and go on with the next listener")
	require.Empty(t, snap.Retired)
}

func TestReusePortGroupShowsItsFullestMember(t *testing.T) {
	l := newLab(t, nil)
	// Any member has room for all: the kernel distributes by a hash of the ports, and a
	// client stays with its member.
	a := l.listen(t, nettest.ListenOptions{Backlog: 6, ReusePort: true})
	for range 3 {
		l.listen(t, nettest.ListenOptions{Address: a.Addr.String(), Backlog: 6, ReusePort: true})
	}
	l.scan(t)
	l.queue(t, a.Addr, 6)
	l.Sample()
	got := only(t, l.scan(t))
	require.Equal(t, 4, got.Members)
	require.GreaterOrEqual(t, got.AcceptQueue.Length, 2, "six clients over four members: one has at least two")
	require.LessOrEqual(t, got.AcceptQueue.Length, 6)
}

// Drops that fall between the reading of the namespace's counters and the
// sockets' are there all the time in an overload.
func TestDroppedSYNsAreNotCalledACKs(t *testing.T) {
	const packets = 20_000
	l := newLab(t, nil)
	server := l.listen(t, nettest.ListenOptions{Backlog: 5})
	l.queue(t, server.Addr, 6)
	l.scan(t)
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.overflow(t, server.Addr, packets)
	}()
	for running := true; running; {
		select {
		case <-over:
			running = false
		default:
			l.Sample()
		}
	}
	dropped := make(map[model.Packet]uint64)
	for key, n := range only(t, l.scan(t)).Totals.Dropped {
		dropped[key.Packet] += n
	}
	t.Logf("%v", dropped)
	require.Zero(t, dropped[model.PacketACK])
	require.GreaterOrEqual(t, dropped[model.PacketSYN]+dropped[model.PacketUnknown], uint64(packets), "a client that waits for a second repeats its SYN")
	require.Greater(t, dropped[model.PacketSYN], uint64(packets/2), "the kernel drops one in the time of a reading")
}

func TestSampleAllocatesNothing(t *testing.T) {
	for name, n := range map[string]int{"exact requests": 3, "LISTEN dump": 40} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, nil)
			for range n {
				l.listen(t, nettest.ListenOptions{Backlog: 5})
			}
			l.scan(t)
			l.Sample()
			require.Zero(t, testing.AllocsPerRun(200, l.Sample))
		})
	}
}

// The samples do not wait for the walk of the table.
func TestQueuesAreSampledBeforeTheFirstWalk(t *testing.T) {
	l := newLab(t, nil)
	l.listen(t, nettest.ListenOptions{Backlog: 5})
	require.NoError(t, l.relist(context.Background(), 0))
	require.Nil(t, l.Snapshot())
	l.Sample()
	l.lister.Namespaces.All[0].Books(func(b *losses.Books) {
		require.Len(t, b.Accounts(), 1)
		for _, a := range b.Accounts() {
			require.EqualValues(t, 1, a.Totals().Fill.Count)
		}
	})
}

// Nor for a discovery, which only says more of a listener that was asked for.
func TestQueuesAreSampledBeforeDiscoveryEnds(t *testing.T) {
	l := newLab(t, nil)
	l.listen(t, nettest.ListenOptions{Backlog: 5})
	named, listed := make(chan struct{}), make(chan struct{})
	l.lister.Connectors.Discover = func(_ context.Context, _ int, _ uint64, ports []match.Listening) (match.Connectors, []model.Unavailable) {
		select {
		case <-named:
		case <-time.After(time.Minute):
			t.Error("what is sampled waits for discovery")
		}
		out := make(match.Connectors)
		for _, p := range ports {
			out[netip.AddrPortFrom(p.Address, p.Port)] = &model.Connector{Server: "tomcat"}
		}
		return out, nil
	}
	clocks := &tasks{scheduler: l.Scheduler, patience: 2 * time.Minute}
	require.NoError(t, clocks.begin(context.Background(), named, listed))
	<-listed
	require.Len(t, l.list.Load().Watched, 1)
	require.NotNil(t, l.list.Load().Watched[0].Connector, "the first snapshot waits for it")
}

// On a slow machine the first scan may outlast the interval.
func TestObserveForLessThanAScan(t *testing.T) {
	l := newLab(t, nil)
	l.listen(t, nettest.ListenOptions{Backlog: 5})
	require.NoError(t, l.Observe(context.Background(), time.Nanosecond))
	require.NotNil(t, only(t, l.Snapshot()).Losses, "two looks")
}

func TestSysctlsAreReadAgainAfterAWhile(t *testing.T) {
	now := time.Now()
	l := newLab(t, func(o *Options) { o.Now = func() time.Time { return now } })
	l.listen(t, nettest.ListenOptions{Backlog: 5})
	somaxconn := func() int { return l.scan(t).NetNS[0].Sysctl["somaxconn"] }
	l.Sysctl(t, "net.core.somaxconn", "17")
	require.Equal(t, 17, somaxconn())
	l.Sysctl(t, "net.core.somaxconn", "18")
	now = now.Add(10*time.Second - time.Second)
	require.Equal(t, 17, somaxconn())
	now = now.Add(time.Second)
	require.Equal(t, 18, somaxconn())
}

// Many listeners, samples without end: nothing grows.
func TestLongTenThousandSamplesLeakNothing(t *testing.T) {
	l := newLab(t, func(o *Options) { o.MaxListeners = 0 })
	many := proof.Size(500, 200)
	for range many {
		l.listen(t, nettest.ListenOptions{Backlog: 5})
	}
	require.Len(t, l.scan(t).Listeners, many)
	work := func() {
		for i := range 10_000 {
			l.Sample()
			if i%500 == 0 {
				l.scan(t)
			}
		}
	}
	work() // until then what is kept for a while fills
	// What leaks does so each time. What fills only once, or another test has left and
	// will end, does not.
	leastDescriptors, leastGoroutines, leastHeap := math.MaxInt, math.MaxInt, math.MaxInt
	for range 3 {
		descriptors, goroutines, heap := usage(t)
		work()
		d, g, h := usage(t)
		leastDescriptors, leastGoroutines = min(leastDescriptors, d-descriptors), min(leastGoroutines, g-goroutines)
		leastHeap = min(leastHeap, int(h)-int(heap))
	}
	require.LessOrEqual(t, leastDescriptors, 2)
	require.LessOrEqual(t, leastGoroutines, 2)
	require.Less(t, leastHeap, 4<<20, "heap in bytes")
}

func usage(t require.TestingT) (descriptors, goroutines int, heap uint64) {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return len(entries), runtime.NumGoroutine(), m.HeapAlloc
}

func TestListenerThatVanishesBetweenTwoSamples(t *testing.T) {
	l := newLab(t, nil)
	stays := l.listen(t, nettest.ListenOptions{Backlog: 5})
	goes := l.listen(t, nettest.ListenOptions{Backlog: 5})
	require.Len(t, l.scan(t).Listeners, 2)
	goes.Close()
	l.Sample()
	select {
	case <-l.bells.list:
	default:
		t.Fatal("a vanished listener brings the next scan forward")
	}
	require.Equal(t, stays.Addr, only(t, l.scan(t)).ID.Address)
}

func TestOnlyTomcatsUnlessThereIsNone(t *testing.T) {
	l := newLab(t, func(o *Options) { o.All = false })
	l.listen(t, nettest.ListenOptions{Backlog: 5})
	snap := l.scan(t)
	only(t, snap)
	require.Equal(t, []string{"no Tomcat found: showing everything that listens"}, snap.Notes)
}

func TestPIDThatDoesNotExist(t *testing.T) {
	proc := hostfs.Real(t)
	opt := Defaults()
	opt.PIDs = []int{1 << 22}
	_, err := New(Sources{Sources: watchlist.Sources{Mount: "/proc", Proc: proc, Owners: owner.New(proc), Discovery: discovery.NewDiscoverer(proc)}}, opt)
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}
