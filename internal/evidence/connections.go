package evidence

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// limitAge is how old a walk may be that shows the limit reached, roomAge
	// one that shows room: a server that fills does so in less than a second.
	limitAge, roomAge = 5 * time.Second, 1500 * time.Millisecond
)

// limit is the number of connections that counts as maxConnections.
func (p *Phases) limit() (int, bool) {
	if !p.MaxConnections.Known || p.MaxConnections.V < 0 {
		return 0, false
	}
	return model.ConnectionsReached(p.MaxConnections.V), true
}

// atLimit reports whether all slots were taken at the nearest walk.
func (p *Phases) atLimit() bool {
	limit, ok := p.limit()
	return ok && p.Walked && p.Age <= limitAge && p.Held >= limit
}

// room reports whether slots were free, for certain, at the nearest walk.
func (p *Phases) room() bool {
	if !p.Walked || p.Partial || p.Uncertain || p.Age > roomAge || !p.MaxConnections.Known {
		return false
	}
	limit, limited := p.limit()
	return !limited || p.Held < limit
}

// connectionsCause says why all slots are taken. Idle connections that are
// counted too low cannot be too many.
func (j *judge) connectionsCause() model.Cause {
	p := j.phases
	if p.Walked && p.Age <= limitAge && p.Held > 0 && model.MostlyIdle(p.Idle, p.Held) {
		return model.CauseKeepAliveIdle
	}
	return model.CauseMaxConnections
}
