package sampler

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// TIME_WAIT sockets hold no place of any stage, only a row in the kernel's
// table, for a minute each: a server that answers 40,000 requests a second and
// closes after each hundredth leaves 25,000 of them, ten times its connections.
// So a walk takes them along only while there are few in the namespace, and
// otherwise every timeWaitRest; in between their number is the latest.
const (
	fewTimeWait  = 1000
	timeWaitRest = seldom
)

// statesToWalk are those of the walk at the time now.
func (sp *space) statesToWalk(now time.Time) sockdiag.States {
	if sp.sockstat["tw"] > fewTimeWait && now.Sub(sp.timeWaitAt) < timeWaitRest {
		return sockdiag.Connected().Without(sockdiag.TimeWait)
	}
	sp.timeWaitAt = now
	return sockdiag.Connected()
}

// recallTimeWait fills in what the walk at the time now left out.
func (sp *space) recallTimeWait(now time.Time, c *candidate, g *gathered) {
	n := &g.states[sockdiag.TimeWait]
	if sp.timeWaitAt.Equal(now) {
		c.account.timeWait = *n
	}
	*n = c.account.timeWait
}
