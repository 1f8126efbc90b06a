package schedule

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// change hands the sampler, which is driven by hand, other options.
func (l *lab) change(t testing.TB, change func(*Options)) {
	t.Helper()
	opt := *l.opt.Load()
	change(&opt)
	require.NoError(t, l.reconfigure(opt))
}

func watching(ports ...uint16) func(*Options) {
	return func(o *Options) { o.Ports, o.All = ports, false }
}

// conserved checks that every packet the kernel dropped is on somebody's
// account or on nobody's, and returns the accounts by port.
func conserved(t *testing.T, snap *model.Snapshot) map[uint16]uint64 {
	t.Helper()
	byPort := make(map[uint16]uint64)
	sum := snap.NetNS[0].Unattributed
	add := func(port uint16, totals model.Totals) {
		for _, n := range totals.Dropped {
			byPort[port] += n
			sum += n
		}
	}
	for i := range snap.Listeners {
		add(snap.Listeners[i].Port, snap.Listeners[i].Totals)
	}
	for _, gone := range snap.Retired {
		add(gone.ID.Address.Port(), gone.Totals)
	}
	require.Equal(t, snap.NetNS[0].Delta["ListenDrops"], sum)
	return byPort
}

// A listener that is not watched for a while has not closed: nobody was reset,
// and its counter stands still and continues later. Nothing is lost meanwhile.
func TestReconfigureConservesDrops(t *testing.T) {
	l := newLab(t, nil)
	a := l.listen(t, nettest.ListenOptions{Backlog: 1})
	b := l.listen(t, nettest.ListenOptions{Backlog: 1})
	pa, pb := a.Addr.Port(), b.Addr.Port()
	l.Scheduler = l.sampler(t, watching(pa))
	flood := func(s *nettest.Listener, n int) {
		l.overflow(t, s.Addr, n)
		l.Sample()
	}
	l.scan(t)
	l.queue(t, a.Addr, 2)
	l.queue(t, b.Addr, 2)
	flood(a, 100)
	flood(b, 10)
	snap := l.scan(t)
	require.Equal(t, map[uint16]uint64{pa: 100}, conserved(t, snap))

	flood(a, 7) // not settled yet
	l.change(t, watching(pb))
	flood(a, 3) // until the next scan it is still watched
	snap = l.scan(t)
	require.Equal(t, map[uint16]uint64{pa: 110}, conserved(t, snap))
	require.Equal(t, pb, only(t, snap).Port)
	require.Len(t, snap.Retired, 1)
	require.Zero(t, snap.Retired[0].Totals.QueueResets, "its clients still wait")

	flood(a, 50)
	flood(b, 60)
	snap = l.scan(t)
	require.Equal(t, map[uint16]uint64{pa: 110, pb: 60}, conserved(t, snap))
	require.EqualValues(t, 60, snap.NetNS[0].Unattributed, "b's first ten, a's fifty")

	l.change(t, watching(pa, pb))
	l.scan(t)
	flood(a, 5)
	flood(b, 5)
	snap = l.scan(t)
	require.Equal(t, map[uint16]uint64{pa: 115, pb: 65}, conserved(t, snap))
	require.Empty(t, snap.Retired)

	// One that closes while it is not watched is not noticed; one that closes
	// between the change and the scan is.
	l.change(t, watching(pb))
	l.scan(t)
	a.Close()
	snap = l.scan(t)
	require.Zero(t, snap.Retired[0].Totals.QueueResets)
	l.change(t, watching(pa))
	b.Close()
	snap = l.scan(t)
	totals := make(map[uint16]uint64)
	for _, gone := range snap.Retired {
		totals[gone.ID.Address.Port()] = gone.Totals.QueueResets
	}
	require.Equal(t, map[uint16]uint64{pa: 0, pb: 2}, totals)
}

// Beyond --max-listeners is not closed either: one that is named comes before one that is not.
func TestListenerThatIsCrowdedOutResetsNobody(t *testing.T) {
	l := newLab(t, func(o *Options) { o.MaxListeners = 1 })
	late := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:9000", Backlog: 5})
	l.scan(t)
	l.queue(t, late.Addr, 3)
	l.Sample()
	l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8000", Backlog: 5})
	require.EqualValues(t, 9000, only(t, l.scan(t)).Port, "what is watched stays")
	l.change(t, func(o *Options) { o.All, o.Targets = true, []watchlist.Target{{Ports: []uint16{8000}}} })
	snap := l.scan(t)
	require.EqualValues(t, 8000, only(t, snap).Port)
	require.Equal(t, 1, snap.Omitted)
	require.Len(t, snap.Retired, 1)
	require.Zero(t, snap.Retired[0].Totals.QueueResets)
}

func TestTargetsHaveSettingsOfTheirOwn(t *testing.T) {
	l := newLab(t, nil)
	a := l.listen(t, nettest.ListenOptions{Backlog: 5})
	b := l.listen(t, nettest.ListenOptions{Backlog: 5})
	pa, pb := a.Addr.Port(), b.Addr.Port()
	l.change(t, func(o *Options) {
		o.All = true
		o.Labels = map[string]string{"team": "x", "zone": "1"}
		o.Limits = watchlist.Overrides{MaxThreads: watchlist.ByHand(new(20), "flag --max-threads")}
		o.Targets = []watchlist.Target{
			{Ports: []uint16{pa}, Labels: map[string]string{"app": "shop", "team": "y"}, Limits: watchlist.Overrides{MaxConnections: watchlist.ByHand(new(7), "tcpdiag.yml line 3")}},
			{Ports: []uint16{1}, Labels: map[string]string{"app": "none"}},
		}
	})
	snap := l.scan(t)
	byPort := make(map[uint16]*model.Listener)
	for i := range snap.Listeners {
		byPort[snap.Listeners[i].Port] = &snap.Listeners[i]
	}
	require.Len(t, byPort, 3)
	require.True(t, byPort[pa].Expected)
	require.False(t, byPort[pb].Expected, "all, but not named")
	require.Equal(t, model.StatusDown, byPort[1].Verdict.Status)
	require.Equal(t, &model.Setting[int]{Value: 7, Kind: model.SourceFlag, Source: "tcpdiag.yml line 3"}, byPort[pa].Connector.MaxConnections)
	require.Equal(t, 20, byPort[pa].Connector.MaxThreads.Value)
	require.Nil(t, byPort[pb].Connector.MaxConnections, "for that port only")
	require.Equal(t, 20, byPort[pb].Connector.MaxThreads.Value)

	ns := snap.NetNS[0].ID
	require.ElementsMatch(t, []model.Target{{Port: pa, NetNS: ns, Up: true}, {Port: 1, NetNS: ns}}, snap.Targets)
	require.ElementsMatch(t, []model.TargetInfo{
		{Port: pa, NetNS: ns, Labels: map[string]string{"app": "shop", "team": "y", "zone": "1"}},
		{Port: pb, NetNS: ns, Labels: map[string]string{"team": "x", "zone": "1"}},
		{Port: 1, NetNS: ns, Labels: map[string]string{"app": "none", "team": "x", "zone": "1"}},
	}, snap.TargetInfos)
}

// A target with a pid is looked for in that process's namespace, and only there.
func TestReconfigureOpensAndClosesNamespaces(t *testing.T) {
	l := newLab(t, func(o *Options) { o.All = false })
	other, pid := namespaceWithProcess(t)
	address := netip.MustParseAddrPort("127.0.0.1:8080")
	l.listen(t, nettest.ListenOptions{Address: address.String(), Backlog: 5})
	other.Do(func() {
		nettest.Listen(t, nettest.ListenOptions{Address: address.String(), Backlog: 5})
		nettest.Listen(t, nettest.ListenOptions{Address: "127.0.0.1:9090", Backlog: 5})
	})
	l.scan(t)
	first := l.Snapshot().NetNS[0].ID
	descriptors, _, _ := usage(t)

	l.change(t, func(o *Options) {
		o.Targets = []watchlist.Target{{Ports: []uint16{8080}}, {Ports: []uint16{9090}, PID: pid}}
	})
	snap := l.scan(t)
	require.Len(t, snap.NetNS, 2)
	require.Equal(t, first, snap.NetNS[0].ID)
	second := snap.NetNS[1].ID
	require.Equal(t, []model.Target{{Port: 8080, NetNS: first, Up: true}, {Port: 9090, NetNS: second, Up: true}}, snap.Targets)
	for _, listener := range snap.Listeners {
		require.Equal(t, listener.ID.NetNS == second, listener.Port == 9090, "nobody asked for %s there", listener.ID)
	}

	l.change(t, func(o *Options) { o.Targets = nil })
	require.Len(t, l.scan(t).NetNS, 1)
	now, _, _ := usage(t)
	require.Equal(t, descriptors, now)
}

func TestReconfigureThatFailsChangesNothing(t *testing.T) {
	l := newLab(t, nil)
	server := l.listen(t, nettest.ListenOptions{Backlog: 5})
	_, pid := namespaceWithProcess(t)
	l.scan(t)
	descriptors, _, _ := usage(t)
	err := l.reconfigure(Options{Options: watchlist.Options{Targets: []watchlist.Target{{PID: pid}, {PID: 1 << 22}}}, SampleInterval: time.Hour})
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
	require.ErrorContains(t, err, "pid 4194304")
	now, _, _ := usage(t)
	require.Equal(t, descriptors, now, "what was opened for it is closed")
	require.Equal(t, Defaults().SampleInterval, l.opt.Load().SampleInterval)
	require.Equal(t, server.Addr, only(t, l.scan(t)).ID.Address)
}

// What passed in the old interval is no row of ticks missed in the new one.
func TestReconfigureMissesNoTicks(t *testing.T) {
	now := time.Now()
	l := newLab(t, func(o *Options) { o.Now, o.SampleInterval = func() time.Time { return now }, 10*time.Second })
	l.scan(t)
	l.Sample()
	now = now.Add(9 * time.Second)
	l.change(t, func(o *Options) { o.SampleInterval = time.Millisecond })
	l.Sample()
	require.Zero(t, l.scan(t).Self.MissedTicks)
	now = now.Add(5 * time.Millisecond)
	l.Sample()
	require.EqualValues(t, 4, l.scan(t).Self.MissedTicks)
}

// While both loops run, drops continue and readers read.
func TestReconfigureWhileRunning(t *testing.T) {
	l := newLab(t, nil)
	a := l.listen(t, nettest.ListenOptions{Backlog: 1})
	b := l.listen(t, nettest.ListenOptions{Backlog: 1})
	l.Scheduler = l.sampler(t, func(o *Options) {
		watching(a.Addr.Port())(o)
		o.SampleInterval, o.ScanInterval, o.Window = time.Second, time.Minute, time.Hour
	})
	require.NoError(t, l.Scan(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	l.queue(t, a.Addr, 2)
	l.queue(t, b.Addr, 2)
	for i := range 20 {
		opt := l.options(watching([][]uint16{{a.Addr.Port()}, {b.Addr.Port()}, {a.Addr.Port(), b.Addr.Port()}}[i%3]...))
		opt.SampleInterval, opt.ScanInterval = time.Millisecond, 100*time.Millisecond
		changed := make(chan error, 2) // two at once wait for each other
		for range 2 {
			go func() { changed <- l.Reconfigure(t.Context(), opt) }()
		}
		l.overflow(t, a.Addr, 10)
		l.overflow(t, b.Addr, 10)
		require.NoError(t, <-changed)
		require.NoError(t, <-changed)
	}
	samples := l.Snapshot().Self.SampleSeconds.Count
	require.Eventually(t, func() bool { return l.Snapshot().Self.SampleSeconds.Count > samples+200 }, time.Minute, time.Millisecond,
		"a thousand samples a second, not one")
	stop()
	require.NoError(t, <-done)
	l.scan(t)
	snap := l.scan(t)
	require.EqualValues(t, 400, snap.NetNS[0].Delta["ListenDrops"])
	byPort := conserved(t, snap)
	require.NotZero(t, byPort[a.Addr.Port()])
	require.NotZero(t, byPort[b.Addr.Port()])

	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, l.Reconfigure(ended, *l.opt.Load()), context.Canceled)
}

// options are those of the lab with a change.
func (l *lab) options(change func(*Options)) Options {
	opt := Defaults()
	change(&opt)
	return opt
}
