package observer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/metronome"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// Sampler watches the listeners of its namespaces. Run it, or call Scan and
// Sample by hand; Snapshot may be called from anywhere at any time.
type Sampler struct {
	opt       atomic.Pointer[Options]
	roster    atomic.Pointer[roster]
	published atomic.Pointer[model.Snapshot]

	lister    *lister
	tables    *tables
	processes *processes
	acceptors *acceptors
	publisher *publisher
	bucket    *bucket
	self      self

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
func New(src Sources, opt Options) (*Sampler, error) {
	s := &Sampler{
		changes: make(chan change), ended: make(chan struct{}),
		bells: bells{list: newBell(), publish: newBell(), walk: newBell(), read: newBell()},
	}
	s.opt.Store(&opt)
	now := func() time.Time { return s.options().Now() }
	s.tables, s.processes = newTables(src.Proc, now), newProcesses(src.Proc, now)
	s.acceptors = newAcceptors(src.Proc, now, src.Evidence)
	s.publisher = newPublisher(src.Proc, s.tables, s.processes, s.acceptors)
	s.bucket = newBucket(opt.Now())
	s.lister = newLister(&src, now, s.bells.list.ring)
	s.lister.places.settle = func(a *losses.Account) { s.publisher.settle(a, s.options()) }
	s.self.interval = opt.ScanInterval
	if err := s.adopt(opt); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Sampler) options() *Options { return s.opt.Load() }

// adopt makes the options the observer's. With an error all stays as it was.
func (s *Sampler) adopt(opt Options) error {
	if err := s.lister.adopt(&opt); err != nil {
		return err
	}
	s.opt.Store(&opt)
	return nil
}

// Close releases the netlink sockets and files. Where a task is held up, the end
// of the program does.
func (s *Sampler) Close() error {
	if s.started.Load() {
		select {
		case <-s.ended:
		default:
			return nil
		}
	}
	s.processes.close()
	s.acceptors.close()
	return s.lister.places.close()
}

// Snapshot is what was published last, nil before the first. It must not be
// changed.
func (s *Sampler) Snapshot() *model.Snapshot { return s.published.Load() }

// Sample makes one sample of every watched accept queue. It allocates nothing,
// writes no log line, and takes no lock that a reader of Snapshot could hold.
func (s *Sampler) Sample() {
	r := s.roster.Load()
	if r == nil {
		return
	}
	opt := s.options()
	start := opt.Now()
	before, _ := cputime.Thread()
	s.self.tick(start, opt.SampleInterval)
	var alarm namespace.Alarm
	for _, n := range r.places {
		alarm = alarm.Or(n.Sample(start, maxGap*opt.SampleInterval))
	}
	after, _ := cputime.Thread()
	s.self.sampled(opt.Now(), start, after-before, alarm.Failed)
	if alarm.Any() {
		s.alarmed(alarm)
	}
}

// maxGap is how many sample intervals of a gap may count as full.
const maxGap = 5

// alarmed wakes the clocks. What they read then brings a snapshot forward.
func (s *Sampler) alarmed(a namespace.Alarm) {
	if a.Lost {
		s.bells.list.ring()
	}
	if a.Dropped || a.Filled {
		s.bells.walk.ring()
		s.bells.read.ring()
	}
}

// Scan reads everything once and publishes it. It fails only when the kernel
// cannot be asked for its listeners; whatever else is missing is named in the
// snapshot.
func (s *Sampler) Scan(ctx context.Context) error {
	start := s.options().Now()
	if err := s.list(ctx, oneShotPatience); err != nil {
		s.blind()
		return fmt.Errorf("scan: %w", err)
	}
	r := s.roster.Load()
	if err := s.readAll(ctx, r); err != nil {
		s.blind()
		return fmt.Errorf("scan: %w", err)
	}
	s.publish(true)
	s.self.scanned(s.options().Now().Sub(start))
	return ctx.Err()
}

// oneShotPatience is how long a scan waits for the limits of all processes.
const oneShotPatience = discoveryDeadline

// readAll reads the connections and processes of all that is watched. It fails
// when no namespace can be walked.
func (s *Sampler) readAll(ctx context.Context, r *roster) error {
	for key := range r.owners() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.processes.read(key)
	}
	s.processes.keep(r.owners())
	var errs []error
	walked := 0
	for _, n := range r.places {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(r.in(n.ID)) == 0 {
			continue
		}
		walked++
		if _, err := s.walk(r, n); err != nil {
			errs = append(errs, err)
		}
	}
	s.tables.keep(r)
	if walked > 0 && len(errs) == walked {
		return errors.Join(errs...)
	}
	return nil
}

// walk reads the connections of one namespace, and what else its table says.
func (s *Sampler) walk(r *roster, n *namespace.Namespace) (time.Duration, error) {
	cost, err := s.tables.walk(r, n)
	cost += s.tables.resets(r, n, n.Readings())
	if !s.looping.Load() || s.published.Load() != nil { // a start does not wait for it
		cost += s.tables.outgoing(r, n, s.processes)
	}
	return cost, err
}

// list makes a roster, and has it watched.
func (s *Sampler) list(ctx context.Context, patience time.Duration) error {
	r, err := s.lister.list(ctx, s.options(), patience)
	if err != nil {
		return err
	}
	s.lister.facts(r)
	s.roster.Store(r)
	return nil
}

// publish makes a snapshot of the newest facts. final: no cause waits for a
// reading.
func (s *Sampler) publish(final bool) {
	r := s.roster.Load()
	if r == nil {
		return
	}
	snap := s.publisher.publish(r, s.options(), final, s.looping.Load())
	snap.Self = s.self.report()
	snap.Self.SourceUp = s.sources(r)
	s.published.Store(snap)
	s.self.told(snap.Time)
}

// run lets the first scan have its own end: it is done even where it takes
// longer than the clocks are to last.
func (s *Sampler) run(first, ctx context.Context) error {
	m, err := metronome.New(s.options().SampleInterval)
	if err != nil {
		return fmt.Errorf("sample: %w", err)
	}
	s.looping.Store(true)
	t := tasks{
		sampler: s, metronome: m, walks: make(map[uint64]*pace),
		reads: make(map[hostproc.ProcessKey]*pace), judges: make(map[model.ListenerID]*pace),
	}
	return t.run(first, ctx)
}

// Run lets the clocks go until ctx is done: samples, evidence, connections,
// snapshots. The queues are sampled as soon as the listeners are known. It fails
// only when these cannot be listed; later failures are in the snapshot.
func (s *Sampler) Run(ctx context.Context) error { return s.run(ctx, ctx) }

// Observe scans twice, interval apart, with the clocks going in between. It is
// the whole life of a one-shot; an interval of 0 scans once.
func (s *Sampler) Observe(ctx context.Context, interval time.Duration) error {
	s.lister.oneShot = true
	if interval <= 0 {
		return s.Scan(ctx)
	}
	within, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	err := s.run(ctx, within)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	return s.Scan(ctx)
}
