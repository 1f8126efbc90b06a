package schedule

import (
	"maps"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
)

const (
	// troubleGap is the least time between two readings of what is in trouble.
	// It doubles while the trouble lasts, up to troubleRest: the first readings
	// name the cause, the later ones follow it.
	troubleGap  = 100 * time.Millisecond
	troubleRest = time.Second
	// troubleOver is how long what was in trouble must be calm for the next
	// trouble to begin at the first gap.
	troubleOver = 3 * time.Second
	// troublePart is the part of a core that the readings of a namespace in trouble take
	// once the bucket is empty: a walk through a million sockets takes half a second. Those of more than
	// troublesWhole take no more than of as many.
	troublePart   = 0.03
	troublesWhole = 4
	// followPart is the part that all readings together take which follow clients that give up, where no CPU time is
	// saved up: less than is saved up in any case.
	followPart = 0.5 * leastCPUPart
	// calmPart is the part of a core that calm readings are spread over, up to calmRest
	// apart; where they would take more than costlyPart then, up to longestRest.
	calmPart    = 0.002
	calmRest    = 10 * time.Second
	costlyPart  = 0.007
	longestRest = 30 * time.Second
	// firstGap is the least time between two first readings of processes for which no CPU time is
	// saved up: of what was never read nothing is known at all.
	firstGap = 100 * time.Millisecond
	// leastCost is the least that a calm reading is taken to cost: waking up for it, and
	// the memory it leaves to be collected, take more than one that asks for little.
	leastCost = 500 * time.Microsecond
)

// pace is how often one thing is read: a namespace's connections, a process.
type pace struct {
	last    time.Time     // when the latest reading began
	cost    time.Duration // of CPU time, of the latest readings
	latest  time.Duration // of the latest one
	gap     time.Duration // between the readings of the trouble under way
	trouble time.Time     // when there last was some
}

// paces are those of several things of one kind.
type paces[K comparable] map[K]*pace

func (ps paces[K]) of(key K) *pace {
	p := ps[key]
	if p == nil {
		p = &pace{gap: troubleGap}
		ps[key] = p
	}
	return p
}

// retain forgets what is not there any more, where there is more than is watched:
// pods come and go as long as the agent runs.
func (ps paces[K]) retain(watched int, there func(K) bool) {
	if len(ps) > watched {
		maps.DeleteFunc(ps, func(key K, _ *pace) bool { return !there(key) })
	}
}

// began takes note of a reading.
func (p *pace) began(now time.Time, cost time.Duration, troubled bool) {
	p.last, p.latest = now, cost
	if p.cost == 0 {
		p.cost = cost
	}
	p.cost = (3*p.cost + cost) / 4
	if troubled {
		p.gap = min(2*p.gap, troubleRest)
	}
}

// paid is until when a reading in trouble is to be followed by none, if there is no CPU
// time saved up, where as many namespaces are.
func (p *pace) paid(troubles int) time.Time {
	part := troublePart * min(1, troublesWhole/float64(max(troubles, 1)))
	return p.last.Add(cputime.Rest(p.latest, 0, part))
}

// follow is when to read next where clients give up, nothing else is in trouble, and as many namespaces are so. saved: there
// is the CPU time for it.
func (p *pace) follow(saved bool, followed int) time.Time {
	if saved {
		return p.last.Add(troubleRest)
	}
	return p.last.Add(cputime.Rest(time.Duration(max(followed, 1))*p.latest, troubleRest, followPart))
}

// another is how much CPU time has to be saved up for one more reading in trouble before
// it is paid for: what it takes, for all but the first.
func (p *pace) another() time.Duration {
	if p.gap > troubleGap {
		return p.latest
	}
	return 0
}

// due is when to read next: at once in trouble, and else so rarely that all of
// the others calm things together keep to calmPart.
func (p *pace) due(now time.Time, troubled bool, every time.Duration, others int) time.Time {
	if troubled {
		if now.Sub(p.trouble) > troubleOver {
			p.gap = troubleGap
		}
		p.trouble = now
		return p.last.Add(p.gap)
	}
	if p.last.IsZero() {
		return now
	}
	// What follows a cheap reading is another mostly: exact requests follow a walk.
	all := max(min(p.cost, p.latest), leastCost) * time.Duration(max(others, 1))
	most := max(every, min(cputime.Rest(all, calmRest, costlyPart), longestRest))
	return p.last.Add(min(cputime.Rest(all, every, calmPart), most))
}
