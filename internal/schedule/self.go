package schedule

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// self is what the scheduler knows of itself. Its lock is held for nanoseconds.
type self struct {
	mu       sync.Mutex
	samples  model.DurationHistogram
	scans    model.DurationHistogram
	missed   uint64
	failed   uint64
	interval time.Duration // between two readings of the connections of what is calm
	lastTick time.Time
	gaps     gaps

	answered    time.Time // when a sample was last answered
	publishedAt time.Time // when a snapshot was last published
}

// tick counts the ticks that should have happened since the last one.
func (s *self) tick(now time.Time, interval time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lastTick.IsZero() && interval > 0 {
		gap := now.Sub(s.lastTick)
		s.gaps.add(now, gap)
		if missed := (gap+interval/2)/interval - 1; missed > 0 {
			s.missed += uint64(missed)
		}
	}
	s.lastTick = now
}

// newInterval forgets the last tick: the time since then is measured in another
// interval.
func (s *self) newInterval() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastTick = time.Time{}
}

// sampled takes note of a sample.
func (s *self) sampled(now time.Time, took time.Duration, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples.Observe(took)
	if failed {
		s.failed++
		return
	}
	s.answered = now
}

func (s *self) scanned(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scans.Observe(took)
}

func (s *self) published(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishedAt = at
}

func (s *self) report(now time.Time) model.Self {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := s.gaps.longest(now)
	if !s.lastTick.IsZero() { // one that has not ended is one
		longest = max(longest, now.Sub(s.lastTick))
	}
	return model.Self{
		SampleSeconds: s.samples, ScanSeconds: s.scans, MissedTicks: s.missed, FailedSamples: s.failed,
		LongestGap: longest, ScanInterval: s.interval,
	}
}

// unhealthyAfter is how long samples or snapshots may be missing.
const unhealthyAfter = 30 * time.Second

// Errors of Healthy.
var (
	errNoSamples   = errors.New("the accept queues have not been sampled")
	errNoSnapshots = errors.New("no snapshot has been published")
)

// healthy says what has stopped. begun is when the clocks began.
func (s *self) healthy(now, begun time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := func(t time.Time) time.Duration {
		if t.Before(begun) {
			t = begun
		}
		return now.Sub(t)
	}
	if d := since(s.answered); d >= unhealthyAfter {
		return fmt.Errorf("%w for %v", errNoSamples, d.Round(time.Second))
	}
	if d := since(s.publishedAt); d >= unhealthyAfter {
		return fmt.Errorf("%w for %v", errNoSnapshots, d.Round(time.Second))
	}
	return nil
}

// gapSeconds is how long a gap between two samples is remembered.
const gapSeconds = 60

// gaps are the longest times between two samples, second by second. It allocates
// nothing.
type gaps [gapSeconds]struct {
	second  int64
	longest time.Duration
}

// add takes a gap that ended now.
func (g *gaps) add(now time.Time, gap time.Duration) {
	second := now.Unix()
	slot := &g[second%gapSeconds]
	if slot.second != second {
		slot.second, slot.longest = second, 0
	}
	slot.longest = max(slot.longest, gap)
}

// longest is the longest of the last minute.
func (g *gaps) longest(now time.Time) (longest time.Duration) {
	for _, slot := range g {
		if now.Unix()-slot.second < gapSeconds {
			longest = max(longest, slot.longest)
		}
	}
	return longest
}
