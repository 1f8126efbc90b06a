package losses

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// pending are dropped packets that have no cause yet: it waits for the reading
// of that moment.
type pending struct {
	Attributed
	since, until time.Time // of the first and the last of them
	after        int       // the checkpoint they follow
	// former: their listener has closed since. How another one at the address
	// is says nothing of them.
	former bool
}

// Drop is what Settle asks about.
type Drop struct {
	Since, Until time.Time
	Former       bool // of the listener that was there before
}

// provisional is the cause shown until the cause is known.
func (p *pending) provisional() model.Cause {
	if p.SynQueue {
		return model.CauseSynBacklog
	}
	return model.CauseAcceptQueue
}

func (p *pending) drops() drops {
	d := drops{packets: p.Packets}
	if p.Estimated {
		d.estimated = p.Packets
	}
	return d
}

// together is how far apart drops may be that get one cause.
const together = 100 * time.Millisecond

// pend books dropped packets whose cause is not known yet.
func (l *ledger) pend(d Attributed, at time.Time) {
	l.pending += d.Packets
	l.dirty = true
	for i := range l.waiting {
		if p := &l.waiting[i]; p.sameAs(d) && p.after == l.number && at.Sub(p.since) < together {
			p.Packets += d.Packets
			p.until = at
			return
		}
	}
	l.waiting = append(l.waiting, pending{Attributed: d, since: at, until: at, after: l.number})
}

func (p *pending) sameAs(d Attributed) bool {
	return !p.former && p.Packet == d.Packet && p.Estimated == d.Estimated && p.SynQueue == d.SynQueue
}

// settle gives packets their cause. Those of the SYN queue have it; for the
// others cause is asked, which may answer that it is to be asked again later.
func (l *ledger) settle(cause func(Drop) (model.Cause, model.Evidence, bool)) {
	left := l.waiting[:0]
	for _, p := range l.waiting {
		c, evidence, known := model.CauseSynBacklog, model.EvidenceNone, true
		if !p.SynQueue {
			c, evidence, known = cause(Drop{Since: p.since, Until: p.until, Former: p.former})
		}
		if !known {
			left = append(left, p)
			continue
		}
		l.pending -= p.Packets
		d := p.drops()
		d.evidence = evidence
		l.settled(model.DropKey{Cause: c, Packet: p.Packet}, d, p.after)
	}
	l.waiting = left
}
