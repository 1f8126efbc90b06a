package api

import (
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Model is the snapshot that the document is of, to be shown by the same code that shows
// this machine's own. What the document has no field for stays unknown: the histogram
// behind first_response, and what a verdict was judged from.
func (s *Snapshot) Model() *model.Snapshot {
	out := &model.Snapshot{
		Time: s.Time, Interval: period(s.IntervalSeconds), ScanAge: spanned(s.ScanAgeSeconds),
		Host: s.Host, Kernel: s.Kernel, Omitted: s.Omitted, Notes: s.Notes,
	}
	for i := range s.Listeners {
		l := s.Listeners[i].model()
		if c := l.Connections; c != nil && s.Listeners[i].Connections.AgeSeconds != nil {
			c.At = s.Time.Add(-c.Age)
		}
		out.Listeners = append(out.Listeners, l)
	}
	for i := range s.NetNS {
		n := &s.NetNS[i]
		out.NetNS = append(out.NetNS, model.NetNS{ID: n.ID, Counters: n.Counters, Delta: n.Delta, Sysctl: n.Sysctl, Sockstat: n.Sockstat, LetInElsewhere: n.LetInElsewhere})
	}
	for _, u := range s.Unavailable {
		out.Unavailable = append(out.Unavailable, model.Unavailable{What: u.What, Why: u.Why, How: u.How})
	}
	return out
}

// period is a number of seconds, bounded: what another machine sends may be any number.
func period(seconds float64) time.Duration {
	const most = float64(math.MaxInt64 / 4)
	n := seconds * float64(time.Second)
	switch {
	case math.IsNaN(n):
		return 0
	case n > most:
		return time.Duration(most)
	case n < -most:
		return -time.Duration(most)
	}
	return time.Duration(math.Round(n))
}

func spanned(seconds *float64) *time.Duration {
	if seconds == nil {
		return nil
	}
	return new(period(*seconds))
}
