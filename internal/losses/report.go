package losses

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Report is what is counted of a listening address as of one moment. It is not changed.
type Report struct {
	Waiting []Drop // packets without a cause, the oldest first
	Closed  Departure
	Absent  bool // nothing listens there
	Recent  int  // the highest sample since the report before
	Samples *model.QueueSamples
	Peak    *Peak
	Losses  *model.Losses
	Lately  *model.Lately
	Spell   *model.Recent
	Totals  model.Totals
}

// Peak is the highest sample of the window.
type Peak struct {
	Length int
	At     time.Time
}

// Cause is what dropped a packet, and what shows it.
type Cause struct {
	Cause    model.Cause
	Evidence model.Evidence
}

// Causes are those of some drops of a listener.
type Causes map[Drop]Cause

// Waiting are the drops that have no cause yet, the oldest first.
func (a *Account) Waiting() (out []Drop) {
	for i := range a.ledger.waiting {
		out = append(out, a.ledger.waiting[i].drop())
	}
	return out
}

// Name gives drops their cause; those that are not among them go on waiting.
func (a *Account) Name(causes Causes) {
	if !a.Waits() {
		return
	}
	a.Settle(func(d Drop) (model.Cause, model.Evidence, bool) {
		c, known := causes[d.key()]
		return c.Cause, c.Evidence, known
	})
}

// Add takes the cause of a drop.
func (c Causes) Add(d Drop, cause Cause) { c[d.key()] = cause }

// key is what remains of a drop when more packets come to it: those get its cause, too.
func (d Drop) key() Drop {
	d.Until = time.Time{}
	return d
}

// Report is what is counted of a listener that is there. sole says that no other listener
// of the namespace is watched; lately is the span that a status looks back on.
func (b *Books) Report(a *Account, now time.Time, sole bool, lately time.Duration) *Report {
	out := &Report{
		Closed: a.Closed(), Absent: a.Absent, Recent: a.TakeRecent(), Samples: a.TakeSamples(), Losses: b.Losses(a, sole),
		Lately: b.Lately(a, sole, now, lately), Spell: a.Recent(now), Totals: a.Totals(),
	}
	if a.Waits() {
		out.Waiting = a.Waiting()
	}
	if length, when, ok := a.Peak(now); ok {
		out.Peak = &Peak{length, when}
	}
	return out
}

// Leave notes of every account whose listener is not there that it is absent, gives its
// drops their causes, and removes it when it has been so for long. missing says which
// those are: of a namespace that did not answer, those that were absent before.
func (b *Books) Leave(now time.Time, missing func(*Account) bool, causes func(model.ListenerID) Causes) {
	for id, a := range b.accounts {
		switch {
		case !missing(a):
		case !a.LastSeen.IsZero() && now.Sub(a.LastSeen) > Retention:
			delete(b.accounts, id)
		default:
			if a.LastSeen.IsZero() {
				a.LastSeen = now
			}
			a.Absent = true
			a.Name(causes(id))
		}
	}
}

// Sum is what was lost by the listeners of a port, whatever their address, nil where
// nothing is known.
func (b *Books) Sum(port uint16) *model.Losses {
	var out *model.Losses
	for id, a := range b.accounts {
		if id.Address.Port() != port {
			continue
		}
		if lost := b.Losses(a, false); lost != nil {
			if out == nil {
				out = &model.Losses{}
			}
			out.By = slices.Concat(out.By, lost.By)
			out.DroppedPackets += lost.DroppedPackets
			out.QueueResets += lost.QueueResets
			out.AbandonedRequests += lost.AbandonedRequests
		}
	}
	if out == nil && b.Spans() {
		out = &model.Losses{}
	}
	return out
}
