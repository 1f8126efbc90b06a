package main

import (
	"context"
	"runtime"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// watching opens a sampler that has scanned, so that it knows its listeners.
func watching(ctx context.Context, change func(*schedule.Options)) (*schedule.Scheduler, error) {
	proc, err := hostproc.NewFS("/proc")
	if err != nil {
		return nil, err
	}
	o := schedule.Defaults()
	o.MaxListeners = 0
	change(&o)
	s, err := schedule.New(schedule.Sources{Sources: watchlist.Sources{
		Mount: "/proc", Proc: proc, Owners: owner.New(proc), Discovery: discovery.NewDiscoverer(proc),
	}}, o)
	if err != nil {
		return nil, err
	}
	for range 2 { // the first finds owners and opens files
		if err := s.Scan(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func ports(list ...uint16) func(*schedule.Options) {
	return func(o *schedule.Options) { o.Ports = list }
}

// allocations counts what n calls allocate, each.
func allocations(n int, do func() error) (float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		if err := do(); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), nil
}

func sampleOf(s *schedule.Scheduler) timed {
	return timed{"sample", func() error { s.Sample(); return nil }}
}

func scanOf(ctx context.Context, s *schedule.Scheduler) timed {
	return timed{"scan", func() error { return s.Scan(ctx) }}
}

// sample is the first budget: one listener, against the bare exchange.
func (b *bench) sample(ctx context.Context) error {
	s, err := watching(ctx, ports(watchedPort))
	if err != nil {
		return err
	}
	defer s.Close()
	request := exactRequest(watchedPort)
	times, err := byTurns(400, 50,
		timed{"bare", func() error { return b.kernel.once(request) }}, sampleOf(s))
	if err != nil {
		return err
	}
	each, err := allocations(10_000, sampleOf(s).do)
	if err != nil {
		return err
	}
	r := ratio(times[1], times[0])
	b.report.add(row{
		What: "one listener's sample, decode and accounts included", Budget: "≤ 1.5 × the bare send + receive; 0 allocations",
		Limit: brief(median(times[0])), Ours: brief(median(times[1])),
		Ratio: times2(r), Note: allocated(each), Met: r <= 1.5 && each < 0.01,
	})
	return nil
}

// scan is the second budget: the walk as the sampler does it, and a whole scan
// (owners, processes, counters, verdicts) besides.
func (b *bench) scan(ctx context.Context) error {
	s, err := watching(ctx, ports(watchedPort))
	if err != nil {
		return err
	}
	defer s.Close()
	conn, err := sockdiag.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	request := dumpRequest(statesConnected, extInfo, watchedPort)
	found := 0
	walk := func() error {
		found = 0
		return conn.Sockets([]uint16{watchedPort}, sockdiag.Connected(), func(*sockdiag.Socket) error { found++; return nil })
	}
	times, err := byTurns(25, 1,
		timed{"bare", func() error { return b.kernel.dump(request) }}, timed{"walk", walk}, scanOf(ctx, s))
	if err != nil {
		return err
	}
	objects, err := allocations(10, scanOf(ctx, s).do)
	if err != nil {
		return err
	}
	walked, whole := ratio(times[1], times[0]), ratio(times[2], times[0])
	each := objects / float64(max(1, found))
	b.report.add(row{
		What:   "the walk for the watched port, decoded: " + count(b.table.size) + " sockets, " + count(found) + " of them its",
		Budget: "≤ 1.2 × the bare dump of the same request",
		Limit:  brief(median(times[0])), Ours: brief(median(times[1])), Ratio: times2(walked), Met: walked <= 1.2,
	}, row{
		What:   "the whole scan: owners, processes, counters, verdict, too",
		Budget: "≤ 1.2 × the same; no allocation per socket",
		Limit:  brief(median(times[0])), Ours: brief(median(times[2])), Ratio: times2(whole),
		Note: allocated(objects) + ", " + number(each) + " per socket", Met: whole <= 1.2 && each < 0.1,
	})
	return nil
}

// rounds is fewer where one takes long: a table of scaling needs shape, not
// exactness.
func rounds(one, budget time.Duration) int {
	return int(min(25, max(3, budget/max(one, time.Microsecond))))
}
