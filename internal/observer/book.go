package observer

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// book gives the listeners of a namespace what is counted of them.
func (e *edition) book(n *namespace.Namespace) {
	if !n.Open() {
		return
	}
	sysctl, _ := n.Sysctl()
	net := model.NetNS{ID: n.ID, Sysctl: sysctl, Sockstat: n.Sockstat()}
	sole := len(e.roster.In(n.ID)) == 1
	n.Books(func(b *losses.Books) {
		if !b.Open() {
			return
		}
		w := b.Window()
		net.Counters, net.Delta, net.Unattributed = w.Counters, w.Delta, w.Unattributed
		if !e.roster.Silent[n.ID] {
			e.NetNS = append(e.NetNS, net)
			e.Interval = max(e.Interval, w.Interval)
		}
		live := make(map[model.ListenerID]bool)
		for i := range e.Listeners {
			if l := &e.Listeners[i]; l.ID.NetNS == n.ID {
				live[l.ID] = true
				e.account(b, b.Account(l.ID), l, sole, &net)
			}
		}
		e.retire(b, n.ID, live)
		e.departed[n.ID] = departures(b, e.Time, w.Interval)
	})
}

// account settles a listener's account and takes from it what happened in the
// window.
func (e *edition) account(b *losses.Books, a *losses.Account, l *model.Listener, sole bool, net *model.NetNS) {
	a.LastSeen, a.Absent = e.Time, false
	if a.Waits() {
		w := e.witnessOf(l)
		a.Settle(w.cause)
	}
	if a.Waits() {
		e.waiting.add(a.Oldest())
	} else {
		e.standing[l.ID].former = look{}
	}
	l.AcceptQueue.Recent = max(a.TakeRecent(), l.AcceptQueue.Length)
	l.AcceptQueue.Samples = a.TakeSamples()
	l.Losses = b.Losses(a, sole)
	if length, when, ok := a.Peak(e.Time); ok && l.Losses != nil {
		// The queue as it is now is a sample, too: never show a peak below it.
		if length < l.AcceptQueue.Length {
			length, when = l.AcceptQueue.Length, e.Time
		}
		l.AcceptQueue.Peak, l.AcceptQueue.PeakAge = &length, max(0, e.Time.Sub(when))
	}
	if l.Losses != nil {
		l.Losses.WorstCase = diagnosis.WorstCase(l.Losses, net.Delta, net.Sysctl)
	}
	if l.Lately = b.Lately(a, sole, e.Time, e.opt.Lately); l.Lately != nil {
		l.Lately.Losses.WorstCase = diagnosis.WorstCase(&l.Lately.Losses, l.Lately.Delta, net.Sysctl)
	}
	l.Recent = a.Recent(e.Time)
	l.Totals = a.Totals()
}

// witnessOf is what is known around a listener's drops.
func (e *edition) witnessOf(l *model.Listener) *witness {
	s := e.standing[l.ID]
	judgements := e.store.Judgements(l.ID)
	before := s.looks.last
	if before.Listener != nil {
		before.Listener = e.previous(l).put(before.Listener)
	}
	return &witness{
		now: e.Time, final: e.final, listener: l, before: before, former: s.former,
		judgements: judgements.List, full: e.earlier[l.ID].since(), t: e.opt.Thresholds,
	}
}

// previous are the readings right before the present ones.
func (e *edition) previous(l *model.Listener) *earlier {
	out := &earlier{}
	if b := e.earlier[l.ID]; b != nil {
		*out = *b
	}
	list := e.store.Connections(l.ID)
	if was, ok := list.Previous(); ok && !was.At.Before(e.standing[l.ID].since) {
		out.connections = was.Value.Behind(l.Connector)
	}
	return out
}
