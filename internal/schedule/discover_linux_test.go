package schedule

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// nodePort is what the pods of these tests listen on.
const nodePort = 28080

// node is a sampler that looks into all namespaces of the machine, whatever
// else there may be, and the clock it is driven by.
type node struct {
	*Scheduler
	now    time.Time
	clock  atomic.Pointer[time.Time] // now, as of the latest scan, for what runs in parallel
	faults *faults
}

func newNode(t testing.TB, change func(*Options)) *node {
	t.Helper()
	nettest.Root(t)
	proc := hostfs.Real(t)
	n := &node{now: time.Now(), faults: newFaults()}
	n.clock.Store(new(n.now))
	opt := Defaults()
	opt.AllNamespaces, opt.Ports, opt.MaxListeners = true, []uint16{nodePort}, 0
	opt.Now = func() time.Time { return n.now }
	if change != nil {
		change(&opt)
	}
	servers := discovery.NewDiscoverer(proc, discovery.WithClock(func() time.Time { return *n.clock.Load() })) // forgets what ended ten minutes ago
	var err error
	n.Scheduler, err = New(n.faults.into(Sources{Sources: watchlist.Sources{Mount: "/proc", Proc: proc, Owners: owner.New(proc), Discovery: servers}}), opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// scan scans after enough time for another search for namespaces.
func (n *node) scan(t *testing.T) *model.Snapshot {
	t.Helper()
	n.now = n.now.Add(time.Minute)
	n.clock.Store(new(n.now))
	require.NoError(t, n.Scan(context.Background()))
	return n.Snapshot()
}

// pod is a namespace with a process.
type pod struct {
	*nettest.NS
	id  netns.ID
	pid int
}

func newPod(t *testing.T) *pod {
	t.Helper()
	ns, pid := namespaceWithProcess(t)
	id, err := netns.OfPID("/proc", pid)
	require.NoError(t, err)
	return &pod{NS: ns, id: id, pid: pid}
}

func (p *pod) listen(t *testing.T, backlog, queued int) (l *nettest.Listener) {
	t.Helper()
	p.Do(func() {
		l = nettest.Listen(t, nettest.ListenOptions{Address: "0.0.0.0:" + strconv.Itoa(nodePort), Backlog: backlog})
		nettest.Queue(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), nodePort), queued)
	})
	return l
}

// of is a pod's listener in a snapshot, nil when there is none.
func (p *pod) of(s *model.Snapshot) *model.Listener {
	for i := range s.Listeners {
		if s.Listeners[i].ID.NetNS == uint64(p.id) {
			return &s.Listeners[i]
		}
	}
	return nil
}

func (p *pod) target(s *model.Snapshot) *model.Target {
	for i := range s.Targets {
		if s.Targets[i].NetNS == uint64(p.id) {
			return &s.Targets[i]
		}
	}
	return nil
}

func (n *node) space(id netns.ID) *namespace.Namespace { return n.lister.Namespaces.Find(uint64(id)) }

func TestEveryNamespaceOnce(t *testing.T) {
	n := newNode(t, nil)
	first, second, empty := newPod(t), newPod(t), newPod(t)
	first.listen(t, 10, 3)
	second.listen(t, 20, 7)
	sibling := first.Command("sleep", "300")
	proctest.Run(t, sibling)

	snap := n.scan(t)
	for p, want := range map[*pod]int{first: 3, second: 7} {
		got := p.of(snap)
		require.NotNil(t, got)
		require.Equal(t, "0.0.0.0:28080", got.ID.Address.String())
		require.Equal(t, want, got.AcceptQueue.Length)
		require.Equal(t, os.Getpid(), got.Process.PID, "the test holds the sockets")
		require.True(t, p.target(snap).Up)
	}
	require.Nil(t, empty.target(snap), "not every pod serves on the port")
	require.False(t, n.space(empty.id).Open(), "nothing there to follow")
	seen := make(map[uint64]bool)
	for _, sp := range n.lister.Namespaces.All {
		require.False(t, seen[sp.ID])
		seen[sp.ID] = true
	}

	empty.listen(t, 5, 1)
	require.Equal(t, 1, empty.of(n.scan(t)).AcceptQueue.Length, "it woke up")
}

// One namespace whose connections cannot be had hides nobody else's.
func TestOneNamespaceCannotBeWalked(t *testing.T) {
	n := newNode(t, func(o *Options) { o.Limits.MaxConnections = watchlist.ByHand(new(10), "flag --max-connections") })
	bad, good := newPod(t), newPod(t)
	bad.listen(t, 10, 3)
	good.listen(t, 10, 7)
	n.scan(t)
	require.True(t, n.Snapshot().Self.SourceUp["sock_diag"])
	n.faults.walk[uint64(bad.id)] = syscall.EIO
	snap := n.scan(t)
	delete(n.faults.walk, uint64(bad.id))
	require.False(t, snap.Self.SourceUp["sock_diag"])
	require.True(t, snap.Self.SourceUp["netstat"])
	require.False(t, good.of(snap).Connections.Partial)
	require.NotNil(t, good.of(snap).AcceptQueue.OldestWait)
	require.NotNil(t, good.of(snap).SynBacklog)
	require.Contains(t, limitNames(good.of(snap)), "max_connections")
	require.True(t, bad.of(snap).Connections.Partial, "never published as a whole one")
	require.Nil(t, bad.of(snap).SynBacklog)
	require.NotNil(t, good.of(snap).Connections.Reset)
	require.Nil(t, bad.of(snap).Connections.Reset, "what is not known to be held is no room")
	require.NotContains(t, limitNames(bad.of(snap)), "max_connections")
	require.Equal(t, 3, bad.of(snap).AcceptQueue.Length)
	var told []string
	for _, u := range snap.Unavailable {
		told = append(told, u.What)
	}
	require.Contains(t, told, fmt.Sprintf("connections in network namespace %d", bad.id))
	require.True(t, n.scan(t).Self.SourceUp["sock_diag"])
}

func limitNames(l *model.Listener) (out []string) {
	for _, limit := range l.Limits {
		out = append(out, limit.Name)
	}
	return out
}

// What a pod has served on once is expected as long as the pod is there.
func TestPortOfAPodGoesDown(t *testing.T) {
	n := newNode(t, nil)
	p := newPod(t)
	l := p.listen(t, 10, 3)
	n.scan(t)
	l.Close()
	snap := n.scan(t)
	require.False(t, p.target(snap).Up)
	require.Equal(t, model.StatusDown, p.of(snap).Verdict.Status)
}

// A namespace ends with its last process, though our socket and the listener's
// own keep it alive; what was lost there is kept.
func TestNamespaceEnds(t *testing.T) {
	n := newNode(t, nil)
	var id netns.ID
	t.Run("pod", func(t *testing.T) {
		p := newPod(t)
		id = p.id
		l := p.listen(t, 5, 6)
		n.scan(t)
		p.Do(func() { nettest.Overflow(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Addr.Port()), 40) })
		n.Sample()
	})
	require.NotNil(t, n.space(id))
	snap := n.scan(t)
	require.Nil(t, n.space(id))
	for _, l := range snap.Listeners {
		require.NotEqual(t, uint64(id), l.ID.NetNS)
	}
	for _, ns := range snap.NetNS {
		require.NotEqual(t, uint64(id), ns.ID)
	}
	var dropped, reset uint64
	for _, gone := range snap.Retired {
		if gone.ID.NetNS == uint64(id) {
			for _, n := range gone.Totals.Dropped {
				dropped += n
			}
			reset += gone.Totals.QueueResets
		}
	}
	require.EqualValues(t, 40, dropped)
	require.EqualValues(t, 6, reset)

	n.now = n.now.Add(2 * losses.Retention)
	for _, gone := range n.scan(t).Retired {
		require.NotEqual(t, uint64(id), gone.ID.NetNS, "forgotten after an hour")
	}
}

// The kernel gives the numbers of namespaces again, and the series are named by
// them: two listeners of one name would spoil every scrape.
func TestNumberOfANamespaceIsGivenAgain(t *testing.T) {
	n := newNode(t, nil)
	p := newPod(t)
	p.listen(t, 5, 0)
	n.scan(t)
	old := losses.NewAccount(p.of(n.Snapshot()).ID, time.Minute)
	old.LastSeen = n.now
	n.lister.Namespaces.Retired.Add(old)
	n.space(p.id).Books(func(b *losses.Books) { b.Remove(old.ID) })
	snap := n.scan(t)
	require.NotNil(t, p.of(snap))
	for _, gone := range snap.Retired {
		require.NotEqual(t, old.ID, gone.ID)
	}
}

// The next pod of that number is another pod: what the first one served on is
// not expected of it, and it starts with nothing lost.
func TestNextPodOfTheNumberIsAnother(t *testing.T) {
	n := newNode(t, nil)
	p := newPod(t)
	listener := model.ListenerID{NetNS: uint64(p.id), Address: netip.MustParseAddrPort("0.0.0.0:28080")}
	former := losses.NewAccount(listener, time.Minute)
	former.LastSeen = n.now
	former.ResetQueue(losses.Departure{Queued: 6})
	n.lister.Namespaces.Retired.Add(former)
	snap := n.scan(t)
	require.Nil(t, p.target(snap), "it has not listened yet")
	require.False(t, n.space(p.id).Open())
	require.Equal(t, []uint64{6}, resets(snap.Retired, listener), "what the one before it lost is kept meanwhile")

	l := p.listen(t, 5, 0)
	snap = n.scan(t)
	require.Zero(t, p.of(snap).Totals.QueueResets)
	require.Empty(t, resets(snap.Retired, listener), "one series of a name")
	l.Close()
	require.Equal(t, []uint64{0}, resets(n.scan(t).Retired, listener))
}

func resets(gone []model.RetainedTotals, id model.ListenerID) (out []uint64) {
	for _, g := range gone {
		if g.ID == id {
			out = append(out, g.Totals.QueueResets)
		}
	}
	return out
}

// The process by which a namespace was entered may end before others.
func TestNamespaceOutlivesAProcess(t *testing.T) {
	n := newNode(t, nil)
	p := newPod(t)
	p.listen(t, 5, 2)
	n.scan(t)
	sp := n.space(p.id)
	second := p.Command("sleep", "300")
	proctest.Run(t, second)
	require.Eventually(t, func() bool {
		id, err := netns.OfPID("/proc", second.Process.Pid)
		return err == nil && id == p.id
	}, time.Minute, time.Millisecond)
	first, err := os.FindProcess(p.pid)
	require.NoError(t, err)
	require.NoError(t, first.Kill())
	require.Eventually(t, func() bool {
		_, err := netns.OfPID("/proc", p.pid)
		return err != nil
	}, time.Minute, time.Millisecond)

	snap := n.scan(t)
	require.Same(t, sp, n.space(p.id))
	require.Equal(t, 2, p.of(snap).AcceptQueue.Length)
	for _, ns := range snap.NetNS {
		if ns.ID == uint64(p.id) {
			require.NotEmpty(t, ns.Sysctl)
			require.NotEmpty(t, ns.Sockstat)
		}
	}
}

// byPacket are dropped packets by kind.
func byPacket(dropped map[model.DropKey]uint64) map[model.Packet]uint64 {
	out := make(map[model.Packet]uint64)
	for key, n := range dropped {
		out[key.Packet] += n
	}
	return out
}

// Seen from the node, a pod's listener has the numbers that it has inside.
func TestNodeAndPodAgree(t *testing.T) {
	n := newNode(t, nil)
	// By one clock: what a drop's cause is depends on the time between two scans.
	inside := newLab(t, func(o *Options) { o.Now = func() time.Time { return n.now } })
	id, err := netns.OfPID("/proc", inside.pid)
	require.NoError(t, err)
	p := &pod{NS: inside.NS, id: id, pid: inside.pid}
	l := p.listen(t, 5, 6)
	accepted := l.Accept(t, 2)
	require.Len(t, accepted, 2)
	p.Do(func() { nettest.Queue(t, netip.MustParseAddrPort("127.0.0.1:28080"), 2) })
	n.scan(t)
	inside.scan(t)
	p.Do(func() { nettest.Overflow(t, netip.MustParseAddrPort("127.0.0.1:28080"), 30) })
	n.Sample()
	inside.Sample()
	far, near := p.of(n.scan(t)), only(t, inside.scan(t))
	require.EqualValues(t, 30, near.Losses.DroppedPackets)
	require.Equal(t, near.Losses.DroppedPackets, far.Losses.DroppedPackets)
	require.Equal(t, byPacket(near.Totals.Dropped), byPacket(far.Totals.Dropped), "for which cause, each has read for itself: the machine may be busy")
	require.Equal(t, near.AcceptQueue.Length, far.AcceptQueue.Length)
	require.Equal(t, near.AcceptQueue.Limit, far.AcceptQueue.Limit)
	require.Equal(t, near.AcceptQueue.SocketDrops, far.AcceptQueue.SocketDrops)
	require.Equal(t, near.Connections.Accepted, far.Connections.Accepted)
	require.Equal(t, near.Connections.Phases, far.Connections.Phases)
	require.Equal(t, near.Connections.States, far.Connections.States)
	require.Equal(t, near.ID, far.ID)
	require.Equal(t, near.Inode, far.Inode)
}

// held is what a sampler holds of the process, except the two descriptors of
// each namespace where nothing is watched: others may come and go on the machine.
type held struct {
	descriptors, threads, goroutines int
	heap                             uint64
}

func (n *node) holding(t require.TestingT) held {
	count := func(dir string) int {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		return len(entries)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return held{count("/proc/self/fd") - 2*len(n.lister.Namespaces.All), count("/proc/self/task"), runtime.NumGoroutine(), m.HeapAlloc}
}

// requireNoMoreThan waits: what a scan or another test leaves for a moment ends, a
// leak stays.
func (n *node) requireNoMoreThan(t *testing.T, before held) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		now := n.holding(t)
		assert.LessOrEqual(t, now.descriptors, before.descriptors+10)
		assert.LessOrEqual(t, now.threads, before.threads+10)
		assert.LessOrEqual(t, now.goroutines, before.goroutines+5)
		assert.Less(t, now.heap, before.heap+before.heap/4+1<<20)
	}, time.Minute, 100*time.Millisecond)
}

// Namespaces that come and go leave nothing behind.
func TestLongFiveHundredNamespaces(t *testing.T) {
	waves := proof.Size(100, 10)
	const pods = 50
	n := newNode(t, func(o *Options) { o.MaxListeners = 100 })
	n.scan(t)
	var before held
	for wave := range waves {
		t.Run(strconv.Itoa(wave), func(t *testing.T) {
			var all []*pod
			for i := range pods {
				p := newPod(t)
				p.listen(t, 5, i%7)
				all = append(all, p)
			}
			snap := n.scan(t)
			n.Sample()
			for i, p := range all {
				require.NotNil(t, p.of(snap), "%d", i)
				require.Equal(t, min(i%7, 6), p.of(snap).AcceptQueue.Length)
			}
		})
		n.scan(t)
		now := n.holding(t)
		t.Logf("after %d namespaces: %+v", (wave+1)*pods, now)
		switch {
		case wave == 1: // tables have grown, retained totals are at their maximum
			before = now
		case wave > 1:
			n.requireNoMoreThan(t, before)
		}
	}
}
