package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// TIME_WAIT sockets hold no place of any stage, only a row in the kernel's
// table, for a minute each: a server that answers 40,000 requests a second and
// closes after each hundredth leaves 25,000 of them, ten times its connections.
// So a walk takes them along only while there are few in the namespace, and
// otherwise twice in their life; in between their number is the latest.
const (
	fewTimeWait  = 1000
	timeWaitRest = 30 * time.Second // half of TCP_TIMEWAIT_LEN
)

// countsTimeWait tells whether the next walk takes TIME_WAIT sockets along.
func (sp *space) countsTimeWait(now time.Time, kept []*candidate) bool {
	if sp.sockstat["tw"] <= fewTimeWait || now.Sub(sp.timeWaitAt) >= timeWaitRest {
		return true
	}
	for _, c := range kept {
		if _, ok := sp.timeWait[c.account]; !ok {
			return true
		}
	}
	return false
}

func statesToWalk(timeWait bool) sockdiag.States {
	if timeWait {
		return sockdiag.Connected()
	}
	return sockdiag.Connected().Without(sockdiag.TimeWait)
}

// countedTimeWait remembers what a whole walk has counted.
func (sp *space) countedTimeWait(now time.Time, out map[*candidate]*gathered) {
	sp.timeWait, sp.timeWaitAt = make(map[*account]int, len(out)), now
	for c, g := range out {
		sp.timeWait[c.account] = g.states[sockdiag.TimeWait]
	}
}

// recallTimeWait fills in what a walk has left out.
func (sp *space) recallTimeWait(out map[*candidate]*gathered) {
	for c, g := range out {
		g.states[sockdiag.TimeWait] = sp.timeWait[c.account]
	}
}

// foreignTimeWait is how many of the namespace's TIME_WAIT sockets now are not
// those of watched listeners, by their share when they were last counted. It
// takes that share when this scan has counted them: sockstat is read after it.
func (sp *space) foreignTimeWait(now time.Time) int {
	all := sp.sockstat["tw"]
	if sp.timeWaitAt.Equal(now) {
		own := 0
		for _, n := range sp.timeWait {
			own += n
		}
		sp.foreign = 1 - min(1, float64(own)/float64(max(all, 1)))
	}
	return int(sp.foreign * float64(all))
}
