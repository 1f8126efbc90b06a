package evidence

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// limitAge is how old a walk may be that shows the limit reached, roomAge
	// one that shows room: a server that fills does so in less than a second.
	limitAge, roomAge = 5 * time.Second, 1500 * time.Millisecond
	// slack is the share of maxConnections that may be missing from the kernel's
	// count of a server at its limit: a walk is not one instant, and Tomcat frees
	// a slot only after the socket is closed. One may from slackFrom on.
	slack     = .02
	slackFrom = 8
	// idleMajority is the share of connections that must be idle to be the cause.
	idleMajority = .5
)

// limit is maxConnections less the slack.
func (p *Phases) limit() (int, bool) {
	most := p.MaxConnections.V
	if !p.MaxConnections.Known || most < 0 {
		return 0, false
	}
	missing := int(float64(most) * slack)
	if most >= slackFrom {
		missing = max(missing, 1)
	}
	return most - missing, true
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
	if p.Walked && p.Age <= limitAge && p.Held > 0 && float64(p.Idle) > idleMajority*float64(p.Held) {
		return model.CauseKeepAliveIdle
	}
	return model.CauseMaxConnections
}
