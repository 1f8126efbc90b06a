package assemble

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// count gives the listeners of a namespace what is counted of them.
func (d *draft) count(n *facts.Namespace) {
	if !n.Counted {
		return
	}
	w := &n.Window
	net := model.NetNS{ID: n.ID, PID: n.PID, Sysctl: n.Sysctl, Sockstat: n.Sockstat, Counters: w.Counters, Delta: w.Delta, Unattributed: w.Unattributed}
	if !d.f.Watchlist.Silent[n.ID] {
		d.NetNS = append(d.NetNS, net)
	}
	live := make(map[model.ListenerID]bool)
	for i := range d.Listeners {
		if l := &d.Listeners[i]; l.ID.NetNS == n.ID {
			live[l.ID] = true
			if a := n.Accounts[l.ID]; a != nil {
				d.account(a, l, &net)
			}
		}
	}
	for id, a := range n.Accounts {
		if h := d.next.histories[id]; h != nil && !live[id] && a.Absent {
			if h.absent { // who comes there now is another one
				h.forget()
			}
			h.absent = true
		}
	}
}

// account takes from a listener's account what happened in the window.
func (d *draft) account(a *losses.Report, l *model.Listener, net *model.NetNS) {
	if len(a.Waiting) > 0 {
		if until := a.Waiting[0].Since.Add(causePatience); d.next.waits.IsZero() || until.Before(d.next.waits) {
			d.next.waits = until
		}
	} else {
		d.next.histories[l.ID].previous = moment{}
	}
	d.next.histories[l.ID].absent = false
	l.AcceptQueue.Recent = max(a.Recent, l.AcceptQueue.Length)
	l.AcceptQueue.Samples = a.Samples
	if a.Losses != nil {
		lost := *a.Losses
		lost.WorstCase = diagnosis.WorstCase(&lost, net.Delta, net.Sysctl)
		l.Losses = &lost
	}
	if p := a.Peak; p != nil && l.Losses != nil {
		length, at := p.Length, p.At
		if length < l.AcceptQueue.Length { // the queue as it is now is a sample, too: never show a peak below it
			length, at = l.AcceptQueue.Length, d.Time
		}
		l.AcceptQueue.Peak, l.AcceptQueue.PeakAge = &length, max(0, d.Time.Sub(at))
	}
	if a.Lately != nil {
		lately := *a.Lately
		lately.Losses.WorstCase = diagnosis.WorstCase(&lately.Losses, lately.Delta, net.Sysctl)
		l.Lately = &lately
	}
	l.Recent = a.Spell
	l.Totals = a.Totals
}

// witnessOf is what is known around a listener's drops.
func (d *draft) witnessOf(l *model.Listener) *witness {
	h := d.next.histories[l.ID]
	before := h.moments.last
	if before.Listener != nil {
		before.Listener = d.previous(l).put(before.Listener)
	}
	judgements, counted := d.f.Judgements[l.ID], d.f.Connections[l.ID]
	return &witness{
		now: d.Time, final: d.opt.Final, listener: l, before: before, previous: h.previous,
		judgements: judgements.List, counted: counted.List, full: d.earlier[l.ID].since(), t: d.opt.Thresholds,
	}
}

// previous are the readings right before the present ones.
func (d *draft) previous(l *model.Listener) *earlier {
	out := &earlier{}
	if b := d.earlier[l.ID]; b != nil {
		*out = *b
	}
	list := d.f.Connections[l.ID]
	if was, ok := list.Previous(); ok && !was.At.Before(d.next.histories[l.ID].since) {
		out.connections = was.Value.Behind(l.Connector)
	}
	return out
}
