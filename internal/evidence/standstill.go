package evidence

import "time"

// Counters are what a JVM publishes of its safepoints (hsperfdata).
type Counters struct {
	Begun      int64         // sun.rt.safepoints: moves when one begins
	Ran        time.Duration // sun.rt.applicationTime: moves when one begins
	Stood      time.Duration // sun.rt.safepointTime: moves when one ends
	Synced     time.Duration // sun.rt.safepointSyncTime where Stood lacks it: moves when all threads have stopped
	Collecting bool          // a collector's pause has begun and not ended
	Started    time.Time     // when the JVM was created, by the clock of then
}

// counted is the time of the latest beginning, stop of all threads, or end, since the counters began.
func (c *Counters) counted() time.Duration { return c.Ran + c.Stood + c.Synced }

// Standstill follows a JVM's safepoints from reading to reading. HotSpot adds a
// safepoint's time when it ends: a collection of some seconds overflows an
// accept queue long before its time shows. The zero value is ready.
type Standstill struct {
	at    time.Time // of the reading before
	last  Counters
	start time.Time // where the counters began, where known
	state progress
	// synced is Synced without the safepoint that is under way, where that is known.
	synced time.Duration
}

// progress is what is known of the present moment.
type progress int

const (
	unclear progress = iota
	runs
	stands
)

// Next is the state of the safepoints at a reading.
func (s *Standstill) Next(at time.Time, c Counters) Safepoint {
	state := s.next(c)
	s.start, s.synced = s.aligned(at, c), s.syncedBefore(state, c)
	s.at, s.last, s.state = at, c, state
	out := Safepoint{Begun: c.Begun, Stood: c.Stood + s.synced, UnderWay: state == stands, Unclear: state == unclear}
	if out.UnderWay {
		out.Lasted = max(0, at.Sub(s.start.Add(c.Ran+out.Stood)))
	}
	return out
}

// syncedBefore leaves out how long the threads took to stop for the safepoint that is under way,
// where it began after the reading before.
func (s *Standstill) syncedBefore(state progress, c Counters) time.Duration {
	switch {
	case state != stands || s.at.IsZero() || c.Stood != s.last.Stood:
		return c.Synced
	case c.Begun == s.last.Begun && s.state == stands:
		return s.synced
	}
	return s.last.Synced
}

// MayStand reports whether the JVM may stand still at the latest reading, for all that is known.
func (s *Standstill) MayStand() bool { return !s.at.IsZero() && s.state != runs }

// next follows beginnings and ends, which take turns. Where several happened
// between two readings the last of them may have been either; so it may before
// the first reading, unless garbage is collected.
func (s *Standstill) next(c Counters) progress {
	begun, ended := c.Begun-s.last.Begun, c.Stood != s.last.Stood
	switch {
	case c.Collecting:
		return stands
	case s.at.IsZero():
		return unclear
	case !ended && begun == 0:
		return s.state
	case !ended:
		return stands
	case begun == 0, begun == 1 && s.state == runs:
		return runs
	}
	return unclear
}

// aligned places the counters on this clock. The JVM says when it started, by
// the clock of then, which may have been set since; but what was counted between
// two readings happened between them, and that holds by any clock.
func (s *Standstill) aligned(at time.Time, c Counters) time.Time {
	if s.at.IsZero() {
		return at.Add(-at.Round(0).Sub(c.Started)) // Round: by the wall clock
	}
	if s.last.counted() == c.counted() {
		return s.start
	}
	earliest, latest := s.at.Add(-c.counted()), at.Add(-c.counted())
	switch {
	case s.start.Before(earliest):
		return earliest
	case s.start.After(latest):
		return latest
	}
	return s.start
}
