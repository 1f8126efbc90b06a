package watch

import "github.com/tcpdiag/tcpdiag/internal/model"

// passed is what happened at a listener since its line before.
type passed struct {
	peak      int
	drops     dropCounts
	abandoned uint64 // the total at its line before
	clients   model.ClientTotals
}

// losses are figures of a line, which are never added up. Clients are counted
// where their handshakes are followed.
type losses struct {
	dropped, abandoned, turnedAway, late uint64
	counted                              bool
}

func (l losses) and(more losses) losses {
	return losses{
		l.dropped + more.dropped, l.abandoned + more.abandoned, l.turnedAway + more.turnedAway, l.late + more.late,
		l.counted || more.counted,
	}
}

func (o *Lines) at(p identity) *passed {
	if o.past[p] == nil {
		o.past[p] = &passed{}
	}
	return o.past[p]
}

func (o *Lines) observe(l *model.Listener) {
	if l.AcceptQueue != nil {
		p := o.at(identityOf(l))
		p.peak = max(p.peak, l.AcceptQueue.Recent)
	}
}

// takePeak gives the highest since it was last asked for.
func (o *Lines) takePeak(l *model.Listener) int {
	p := o.at(identityOf(l))
	defer func() { p.peak = 0 }()
	return p.peak
}

// lost is what was lost since the line before; at a port on which nothing listens,
// what those had lost since who did. It is not known where nobody has.
func (o *Lines) lost(snap *model.Snapshot, l *model.Listener) (sum losses, known bool) {
	sum, known = o.lostThere(snap, l)
	if now := snap.RefusedAt(l); now != nil {
		at := portOf(l.ID.NetNS, l.Port)
		sum.turnedAway += *now - min(o.refused[at], *now)
		sum.counted, o.refused[at] = true, *now
	}
	return sum, known
}

func (o *Lines) lostThere(snap *model.Snapshot, l *model.Listener) (sum losses, known bool) {
	if l.Listening() {
		return o.since(snap, identityOf(l), &l.Totals, l.Losses), true
	}
	for i := range snap.Retired {
		g := &snap.Retired[i]
		if p := identityOfRetired(g); p.port == l.Port && p.id.NetNS == l.ID.NetNS {
			sum, known = sum.and(o.since(snap, p, &g.Totals, nil)), true
		}
	}
	return sum, known
}

func (o *Lines) since(snap *model.Snapshot, p identity, t *model.Totals, lost *model.Losses) losses {
	past := o.at(p)
	before := past.abandoned
	past.abandoned = t.AbandonedRequests
	out := losses{dropped: past.drops.since(snap, p.id, t, lost), abandoned: t.AbandonedRequests - min(before, t.AbandonedRequests)}
	if t.Clients != nil {
		c := model.Clients{ClientTotals: t.Clients.Sub(past.clients)}
		past.clients = *t.Clients
		out.turnedAway, out.late, out.counted = c.TurnedAway(), c.Outcomes[model.ClientDelayed], true
	}
	return out
}

// forget keeps those that the sampler still knows of: with --all, listeners may
// come and go for days.
func (o *Lines) forget(snap *model.Snapshot) {
	known := make(map[identity]*passed, len(o.past))
	keep := func(p identity) {
		if past := o.past[p]; past != nil {
			known[p] = past
		}
	}
	for i := range snap.Listeners {
		keep(identityOf(&snap.Listeners[i]))
	}
	for i := range snap.Retired {
		keep(identityOfRetired(&snap.Retired[i]))
	}
	o.past = known
	ports := make(map[identity]uint64, len(snap.Targets))
	for _, t := range snap.Targets {
		if at := portOf(t.NetNS, t.Port); o.refused[at] > 0 {
			ports[at] = o.refused[at]
		}
	}
	o.refused = ports
}
