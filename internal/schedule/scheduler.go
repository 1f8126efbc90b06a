package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connscan"
	"github.com/tcpdiag/tcpdiag/internal/evidence/reader"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/metronome"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// Scheduler watches the listeners of its namespaces. Run it, or call Scan and
// Sample by hand; Snapshot may be called from anywhere at any time.
type Scheduler struct {
	opt       atomic.Pointer[Options]
	list      atomic.Pointer[watchlist.List]
	published published

	lister    *watchlist.Lister
	facts     *facts.Store
	scanner   *connscan.Scanner
	processes *reader.Processes
	acceptors *reader.Acceptors
	collector *collector
	bucket    *bucket
	self      self
	turns     turns

	bells   bells
	changes chan change // of the options, for the lister's loop
	ended   chan struct{}
	started atomic.Bool // the tasks may still be under way when Run has returned
	looping atomic.Bool // other snapshots follow
	begun   atomic.Pointer[time.Time]
}

// bells wake the clocks.
type bells struct{ list, publish, walk, read bell }

// New opens the namespaces of the targets. It fails when the kernel's socket
// table cannot be asked at all, or a process of Options.PIDs does not exist.
func New(src Sources, opt Options) (*Scheduler, error) {
	s := &Scheduler{
		changes: make(chan change), ended: make(chan struct{}),
		bells: bells{list: newBell(), publish: newBell(), walk: newBell(), read: newBell()},
	}
	s.opt.Store(&opt)
	s.published.begin()
	s.facts = facts.NewStore()
	now := func() time.Time { return s.options().Now() }
	s.scanner, s.processes = connscan.New(src.Proc, s.facts, now), reader.NewProcesses(src.Proc, s.facts, src.openJVM(), now)
	s.acceptors = reader.NewAcceptors(src.Proc, s.facts, src.openJVM(), now, src.Evidence)
	s.collector = newCollector(src.Proc, s.facts)
	s.bucket = newBucket(opt.Now())
	s.lister = watchlist.New(&src.Sources, now, s.bells.list.ring)
	s.lister.Namespaces.Settle = func(a *losses.Account) { s.collector.settle(a, s.options()) }
	s.self.interval = opt.ScanInterval
	if err := s.adopt(opt); err != nil {
		return nil, err
	}
	return s, nil
}

// Close releases the netlink sockets and files. Where a task is held up, the end
// of the program does.
func (s *Scheduler) Close() error {
	if s.started.Load() {
		select {
		case <-s.ended:
		default:
			return nil
		}
	}
	s.processes.Close()
	s.acceptors.Close()
	s.scanner.Close()
	return s.lister.Namespaces.Close()
}

// Scan reads everything once and publishes it. It fails only when the kernel
// cannot be asked for its listeners; whatever else is missing is named in the
// snapshot.
func (s *Scheduler) Scan(ctx context.Context) error { return s.scan(ctx, false) }

// scan is the same. Where it ends an interval, what was dropped until the connections had been read is known.
func (s *Scheduler) scan(ctx context.Context, ends bool) error {
	start := s.options().Now()
	if err := s.relist(ctx, oneShotPatience); err != nil {
		s.blind()
		return fmt.Errorf("scan: %w", err)
	}
	r := s.list.Load()
	if err := s.readAll(ctx, r); err != nil {
		s.blind()
		return fmt.Errorf("scan: %w", err)
	}
	if ends {
		for _, n := range r.Namespaces {
			n.Sample(s.options().Now(), maxGap*s.options().SampleInterval, true)
		}
	}
	s.publish(true)
	s.self.scanned(s.options().Now().Sub(start))
	return ctx.Err()
}

// oneShotPatience is how long a scan waits for the limits of all processes.
const oneShotPatience = watchlist.DiscoveryDeadline

// run lets the clocks go until ctx is done, with an interval only that long.
func (s *Scheduler) run(ctx context.Context, interval time.Duration) error {
	m, err := metronome.New(s.options().SampleInterval)
	if err != nil {
		return fmt.Errorf("sample: %w", err)
	}
	s.looping.Store(true)
	t := tasks{
		scheduler: s, metronome: m, patience: watchlist.DiscoveryPatience, walks: make(paces[uint64]),
		reads: make(paces[hostproc.ProcessKey]), judges: make(paces[model.ListenerID]),
	}
	return t.run(ctx, interval)
}

// Run lets the clocks go until ctx is done: samples, evidence, connections,
// snapshots. The queues are sampled as soon as the listeners are known. It fails
// only when these cannot be listed; later failures are in the snapshot.
func (s *Scheduler) Run(ctx context.Context) error { return s.run(ctx, 0) }

// Observe scans twice, interval apart, with the clocks going in between. It is
// the whole life of a one-shot; an interval of 0 scans once.
func (s *Scheduler) Observe(ctx context.Context, interval time.Duration) error {
	s.lister.OneShot = true
	if interval <= 0 {
		return s.Scan(ctx)
	}
	s.lister.Namespaces.Shared.ReadOnce(rulesPatience)
	if err := errors.Join(s.run(ctx, interval), ctx.Err()); err != nil {
		return err
	}
	s.looping.Store(false) // no other snapshot follows the next one
	return s.scan(ctx, true)
}

// rulesPatience is how long a one-shot waits for the counters of netfilter's rules in all, of all namespaces.
const rulesPatience = 2 * time.Second

// Healthy says that samples or snapshots have stopped. It says nothing of the
// servers that are watched.
func (s *Scheduler) Healthy() error {
	begun := s.begun.Load()
	if begun == nil {
		return nil
	}
	return s.self.healthy(s.options().Now(), *begun)
}

// Reconfigure makes a running scheduler continue with other targets, limits, labels
// and intervals; Inside, Window, Thresholds, Log and Now stay. Listeners that
// are still named keep their counters, the totals of the others are retained as
// those of closed listeners. It returns when the change is in force, and the
// next snapshot, which it brings forward, shows it. With an error nothing has
// changed.
func (s *Scheduler) Reconfigure(ctx context.Context, opt Options) error {
	c := change{opt: opt, done: make(chan error, 1)}
	select {
	case s.changes <- c:
	case <-ctx.Done():
		return fmt.Errorf("reconfigure: a scan is under way: %w", ctx.Err())
	}
	if err := <-c.done; err != nil {
		return fmt.Errorf("reconfigure: %w", err)
	}
	return nil
}
