package sampler

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
)

// steady is the least time that a forecast is drawn through.
const steady = 5 * time.Second

// judge gives a listener its headroom and its verdict, and remembers the look
// for the next one. a is nil for an expected port on which nothing listens.
func (s *Sampler) judge(l *backlog.Listener, a *account, snap *backlog.Snapshot) {
	sp := s.spaceOf(l.ID.NetNS)
	e := diagnosis.Evidence{Now: l, Interval: snap.Interval, Sysctl: sp.sysctl, Closed: s.closed(sp, l.Port, snap)}
	if len(sp.past) > 1 {
		e.Delta = sp.past[len(sp.past)-1].counters.Sub(sp.past[0].counters)
	}
	if a == nil {
		l.Verdict = diagnosis.Judge(e, s.opt.Thresholds)
		return
	}
	past, trend := a.looks.past(snap.Time, s.opt.ScanInterval), a.looks.trend()
	if past.Listener != nil {
		e.Before, e.Elapsed = past.Listener, snap.Time.Sub(past.at)
	}
	if snap.Time.Sub(trend.at) < steady {
		trend.Listener = nil // a trend through two close looks is noise
	}
	l.Limits = diagnosis.Headroom(l, trend.Listener, snap.Time.Sub(trend.at), sp.sysctl, s.opt.Thresholds)
	l.Verdict = a.hysteresis.Apply(snap.Time, diagnosis.Judge(e, s.opt.Thresholds))
	a.looks.push(look{snap.Time, l}, s.opt.ScanInterval)
}

// closed tells of a listener on the port that went away within the window.
func (s *Sampler) closed(sp *space, port uint16, snap *backlog.Snapshot) *diagnosis.Closed {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out *diagnosis.Closed
	for id, a := range sp.accounts {
		ago := snap.Time.Sub(a.closedAt)
		if id.Address.Port() != port || a.closed == 0 || ago > max(snap.Interval, time.Second) {
			continue
		}
		if out == nil || ago < out.Ago {
			out = &diagnosis.Closed{Queued: a.closed, Ago: max(0, ago)}
		}
	}
	return out
}

func (s *Sampler) spaceOf(id uint64) *space {
	for _, sp := range s.spaces {
		if uint64(sp.id) == id {
			return sp
		}
	}
	return s.spaces[0]
}
