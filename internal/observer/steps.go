package observer

import (
	"context"
	"errors"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

func (s *Observer) options() *Options { return s.opt.Load() }

// adopt makes the options the observer's. With an error all stays as it was.
func (s *Observer) adopt(opt Options) error {
	if err := s.lister.Adopt(&opt.Options); err != nil {
		return err
	}
	s.opt.Store(&opt)
	return nil
}

// Sample makes one sample of every watched accept queue. It allocates nothing,
// writes no log line, and takes no lock that a reader of Snapshot could hold.
func (s *Observer) Sample() {
	r := s.roster.Load()
	if r == nil {
		return
	}
	opt := s.options()
	start := opt.Now()
	s.turns.begin(start)
	s.self.tick(start, s.nextSample())
	alarm := namespace.Alarm{Calm: true}
	for i, n := range r.Namespaces {
		alarm = alarm.And(n.Sample(start, maxGap*opt.SampleInterval, s.turns.has(i)))
	}
	end := opt.Now()
	s.turns.end(end, alarm.Calm, s.others)
	s.self.sampled(end, end.Sub(start), alarm.Failed)
	if alarm.Any() {
		s.alarmed(alarm)
	}
}

// nextSample is how long there is from one sample to the next. It is for the goroutine
// that makes them.
func (s *Observer) nextSample() time.Duration {
	return time.Duration(s.turns.step()) * s.options().SampleInterval
}

// maxGap is how many sample intervals of a gap may count as full.
const maxGap = 5

// alarmed wakes the clocks. What they read then brings a snapshot forward.
func (s *Observer) alarmed(a namespace.Alarm) {
	if a.Lost {
		s.bells.list.ring()
	}
	if a.Dropped || a.Filled {
		s.bells.walk.ring()
		s.bells.read.ring()
	}
}

// readAll reads the connections and processes of all that is watched. It fails
// when no namespace can be walked.
func (s *Observer) readAll(ctx context.Context, r *watchlist.List) error {
	for key := range r.Owners() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.processes.Read(key)
	}
	s.processes.Keep(r.Owners())
	var errs []error
	walked := 0
	for _, n := range r.Namespaces {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(r.In(n.ID)) == 0 {
			continue
		}
		walked++
		if _, err := s.walk(r, n); err != nil {
			errs = append(errs, err)
		}
	}
	s.tables.Keep(r.Watchlist)
	if walked > 0 && len(errs) == walked {
		return errors.Join(errs...)
	}
	return nil
}

// walk reads the connections of one namespace, and what else its table says.
func (s *Observer) walk(r *watchlist.List, n *namespace.Namespace) (time.Duration, error) {
	last := !s.looping.Load()
	cost, err := s.tables.Read(r.Watchlist, n, last)
	cost += s.tables.CountForgotten(r.Watchlist, n, n.Readings(), last)
	return cost, err
}

// list makes a roster, and has it watched.
func (s *Observer) list(ctx context.Context, patience time.Duration) error {
	r, err := s.lister.List(ctx, &s.options().Options, patience)
	if err != nil {
		return err
	}
	s.lister.ReadSettings(r)
	s.facts.Keep(r.Watchlist)
	s.roster.Store(r)
	return nil
}

// publish makes a snapshot of the newest facts. final: no cause waits for a
// reading.
func (s *Observer) publish(final bool) {
	r := s.roster.Load()
	if r == nil {
		return
	}
	now := s.options().Now()
	self := s.self.report(now)
	self.CalmInterval = time.Duration(s.turns.number()) * s.options().SampleInterval
	snap := s.publisher.publish(r, s.options(), self, final, s.looping.Load())
	s.published.store(snap)
	s.self.told(snap.Time)
}

// others is the CPU time of everything but the readings, which are spent from the bucket.
func (s *Observer) others() time.Duration {
	if used := s.options().CPUTime; used != nil {
		return used() - s.bucket.total()
	}
	return s.turns.total()
}
