package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// sample is the first clock.
func (t *tasks) sample(ctx context.Context) error {
	for {
		if err := t.metronome.Wait(); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return fmt.Errorf("sample: %w", err)
		}
		t.scheduler.Sample()
		if next := t.scheduler.nextSample(); next != time.Duration(t.ticking.Swap(int64(next))) {
			_ = t.metronome.Set(next) // or all is just being stopped
		}
	}
}

// retime lets the next sample come after a changed interval.
func (t *tasks) retime() {
	t.ticking.Store(0)
	_ = t.metronome.Set(t.scheduler.options().SampleInterval) // or all is just being stopped
}

// Sample makes one sample of every watched accept queue. It allocates nothing,
// writes no log line, and takes no lock that a reader of Snapshot could hold.
func (s *Scheduler) Sample() {
	r := s.list.Load()
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
func (s *Scheduler) nextSample() time.Duration {
	return time.Duration(s.turns.step()) * s.options().SampleInterval
}

// maxGap is how many sample intervals of a gap may count as full.
const maxGap = 5

// alarmed wakes the clocks. What they read then brings a snapshot forward.
func (s *Scheduler) alarmed(a namespace.Alarm) {
	if a.Lost {
		s.bells.list.ring()
	}
	if a.Dropped || a.Filled {
		s.bells.walk.ring()
		s.bells.read.ring()
	}
}
