package incident

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// startsWithin is how long an expected port may be down before anything was seen
// to listen there: an agent in a pod starts before its server does.
const startsWithin = 2 * time.Minute

type expected struct {
	netns uint64
	port  uint16
}

// starting knows the ports at which nothing has listened yet.
type starting struct {
	since map[expected]time.Time // zero: somebody was there
}

// observe takes a snapshot; what is in it no more is forgotten.
func (p *starting) observe(s *model.Snapshot) {
	now := make(map[expected]time.Time, len(s.Listeners))
	for i := range s.Listeners {
		l := &s.Listeners[i]
		port := expected{l.ID.NetNS, l.Port}
		first, known := p.since[port]
		switch other, twice := now[port]; {
		case l.Verdict.Status != model.StatusDown, !l.Expected, twice && other.IsZero(), known && first.IsZero():
			now[port] = time.Time{}
		case known:
			now[port] = first
		default:
			now[port] = s.Time
		}
	}
	p.since = now
}

// has reports whether a listener may still be about to start.
func (p *starting) has(l *model.Listener, now time.Time) bool {
	first := p.since[expected{l.ID.NetNS, l.Port}]
	return l.Verdict.Status == model.StatusDown && !first.IsZero() && now.Sub(first) < startsWithin
}
