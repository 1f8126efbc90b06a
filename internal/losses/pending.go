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
	previous bool
	repeated bool // see spells
}

// Drop is what Settle asks about.
type Drop struct {
	Since, Until time.Time
	Packets      uint64
	Previous     bool // of the listener that was there before
	repeated     bool
}

func (p *pending) drop() Drop {
	return Drop{Since: p.since, Until: p.until, Packets: p.Packets, Previous: p.previous, repeated: p.repeated}
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

func (p *pending) sameAs(d Attributed) bool {
	return !p.previous && p.Packet == d.Packet && p.Estimated == d.Estimated && p.SynQueue == d.SynQueue
}
