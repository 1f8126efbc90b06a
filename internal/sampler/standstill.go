package sampler

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// standstill follows a JVM's safepoints from scan to scan. HotSpot adds a
// safepoint's time when it ends: a collection of some seconds overflows an
// accept queue long before its time shows.
type standstill struct {
	at    time.Time // of the last scan
	begun int64     // sun.rt.safepoints
	stood time.Duration
	open  bool
}

// next says how long the safepoint under way has lasted, nil when none is known
// to be.
func (s *standstill) next(now time.Time, jvm hostproc.JVM) *time.Duration {
	if jvm.Safepoints == nil || jvm.SafepointTime == nil || jvm.ApplicationTime == nil || jvm.Started == nil {
		return nil
	}
	last := *s
	*s = standstill{at: now, begun: *jvm.Safepoints, stood: *jvm.SafepointTime}
	s.open = jvm.Collecting || last.goesOn(*s)
	if !s.open {
		return nil
	}
	// Both times have been added up to where this safepoint began.
	began := jvm.Started.Add(*jvm.ApplicationTime + *jvm.SafepointTime)
	if last.before(*s) && began.Before(last.at) { // the clock was set meanwhile
		began = last.at
	}
	return new(max(0, now.Sub(began)))
}

// goesOn: no safepoint has ended between two scans, and one had begun before
// the first or began between them.
func (s *standstill) goesOn(now standstill) bool {
	return !s.at.IsZero() && s.stood == now.stood && (s.open || s.before(now))
}

// before: a safepoint began between the two scans.
func (s *standstill) before(now standstill) bool { return !s.at.IsZero() && now.begun > s.begun }
