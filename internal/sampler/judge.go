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
	e := diagnosis.Evidence{Now: l, Interval: snap.Interval, Sysctl: sp.sysctl, Delta: sp.delta, Closed: sp.closed[l.Port]}
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

// rememberClosed finds the listeners that went away within the window with
// clients queued, the latest of each port: once a scan, for all that are judged.
func (s *Sampler) rememberClosed(snap *backlog.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.spaces {
		sp.closed = nil
		for id, a := range sp.accounts {
			if a.closed > 0 {
				sp.noteClosed(id.Address.Port(), a, snap)
			}
		}
	}
}

func (sp *space) noteClosed(port uint16, a *account, snap *backlog.Snapshot) {
	ago := snap.Time.Sub(a.closedAt)
	known := sp.closed[port]
	if ago >= max(snap.Interval, time.Second) || (known != nil && known.Ago <= ago) {
		return
	}
	if sp.closed == nil {
		sp.closed = make(map[uint16]*diagnosis.Closed)
	}
	sp.closed[port] = &diagnosis.Closed{Queued: a.closed, Ago: max(0, ago)}
}

func (s *Sampler) spaceOf(id uint64) *space {
	for _, sp := range s.spaces {
		if uint64(sp.id) == id {
			return sp
		}
	}
	return s.spaces[0]
}
