package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// standstill follows a JVM's safepoints from scan to scan. HotSpot adds a
// safepoint's time when it ends: a collection of some seconds overflows an
// accept queue long before its time shows.
type standstill struct {
	at        time.Time // of the last scan
	begun     int64     // sun.rt.safepoints
	stood     time.Duration
	accounted time.Duration // the time that either counter has, up to the last safepoint's beginning or end
	start     time.Time     // where the counters began, where known
	open      bool
}

// next says how long the safepoint under way has lasted, nil when none is known
// to be.
func (s *standstill) next(now time.Time, jvm hostproc.JVM) *time.Duration {
	if jvm.Safepoints == nil || jvm.SafepointTime == nil || jvm.ApplicationTime == nil || jvm.Started == nil {
		return nil
	}
	last := *s
	*s = standstill{at: now, begun: *jvm.Safepoints, stood: *jvm.SafepointTime, accounted: *jvm.ApplicationTime + *jvm.SafepointTime}
	s.open = jvm.Collecting || last.goesOn(*s)
	s.start = last.aligned(*s, *jvm.Started)
	if !s.open {
		return nil
	}
	return new(max(0, now.Sub(s.start.Add(s.accounted))))
}

// goesOn: no safepoint has ended between two scans, and one had begun before
// the first or began between them.
func (s *standstill) goesOn(now standstill) bool {
	return !s.at.IsZero() && s.stood == now.stood && (s.open || now.begun > s.begun)
}

// aligned places the counters on this clock. The JVM says when it started, by
// the clock of then, which may have been set since; but what was accounted
// between two scans happened between them, and that holds by any clock.
func (s *standstill) aligned(now standstill, started time.Time) time.Time {
	switch {
	case s.at.IsZero():
		return now.at.Add(-now.at.Round(0).Sub(started)) // Round: by the wall clock
	case s.accounted == now.accounted:
		return s.start
	}
	earliest, latest := s.at.Add(-now.accounted), now.at.Add(-now.accounted)
	switch {
	case s.start.Before(earliest):
		return earliest
	case s.start.After(latest):
		return latest
	}
	return s.start
}
