package evidence

import "time"

// Counters are what a JVM publishes of its safepoints (hsperfdata).
type Counters struct {
	Begun      int64         // sun.rt.safepoints: moves when one begins
	Ran        time.Duration // sun.rt.applicationTime: moves when one begins
	Stood      time.Duration // sun.rt.safepointTime: moves when one ends
	Collecting bool          // a collector's pause has begun and not ended
	Started    time.Time     // when the JVM was created, by the clock of then
}

// Standstill follows a JVM's safepoints from reading to reading. HotSpot adds a
// safepoint's time when it ends: a collection of some seconds overflows an
// accept queue long before its time shows. The zero value is ready.
type Standstill struct {
	at    time.Time // of the reading before
	last  Counters
	start time.Time // where the counters began, where known
	state progress
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
	s.start = s.aligned(at, c)
	s.at, s.last, s.state = at, c, state
	out := Safepoint{Begun: c.Begun, Stood: c.Stood, UnderWay: state == stands, Unclear: state == unclear}
	if out.UnderWay {
		out.Lasted = max(0, at.Sub(s.start.Add(c.Ran+c.Stood)))
	}
	return out
}

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
	if s.last.Ran+s.last.Stood == c.Ran+c.Stood {
		return s.start
	}
	earliest, latest := s.at.Add(-c.Ran-c.Stood), at.Add(-c.Ran-c.Stood)
	switch {
	case s.start.Before(earliest):
		return earliest
	case s.start.After(latest):
		return latest
	}
	return s.start
}
