package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// steady is the least time that a forecast is drawn through.
const steady = 5 * time.Second

// judge gives a listener its headroom and its verdict, and remembers the look
// for the next one. a is nil for an expected port on which nothing listens.
func (s *Sampler) judge(l *model.Listener, a *account, snap *model.Snapshot) {
	sp := s.spaceOf(l.ID.NetNS)
	e := diagnosis.Evidence{Now: l, Interval: snap.Interval, Sysctl: sp.sysctl, Delta: sp.delta, Closed: sp.closedBefore(l.Port, a, snap.Time)}
	if a == nil {
		l.Verdict = diagnosis.Judge(e, s.opt.Thresholds)
		return
	}
	past, trend := a.looks.past(snap.Time, s.opt.ScanInterval), a.looks.trend()
	if past.Listener != nil {
		e.Before, e.Elapsed = past.Listener, snap.Time.Sub(past.at)
	}
	e.First = e.Before == nil && s.looping
	if snap.Time.Sub(trend.at) < steady {
		trend.Listener = nil // a trend through two close looks is noise
	}
	l.Limits = diagnosis.Headroom(l, trend.Listener, snap.Time.Sub(trend.at), sp.sysctl, s.opt.Thresholds)
	l.Verdict = diagnosis.Judge(e, s.opt.Thresholds)
	if e.Before != nil { // what one look says must not hold back what two say
		l.Verdict = a.hysteresis.Apply(snap.Time, l.Verdict)
	}
	a.looks.push(look{snap.Time, l}, s.opt.ScanInterval)
}

func (s *Sampler) spaceOf(id uint64) *space {
	for _, sp := range s.spaces {
		if uint64(sp.id) == id {
			return sp
		}
	}
	return s.spaces[0]
}
