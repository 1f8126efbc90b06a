package observer

import (
	"cmp"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// retire settles what closed listeners left, and forgets them after an hour.
func (e *edition) retire(b *losses.Books, netns uint64, live map[model.ListenerID]bool) {
	for id, a := range b.Accounts() {
		switch {
		case live[id]:
		case e.roster.Silent[netns] && !a.Absent:
		case !a.LastSeen.IsZero() && e.Time.Sub(a.LastSeen) > losses.Retention:
			b.Remove(id)
		default:
			e.leave(a)
		}
	}
}

// leave settles the account of a listener that is not there.
func (e *edition) leave(a *losses.Account) {
	if a.LastSeen.IsZero() {
		a.LastSeen = e.Time
	}
	s := e.standing[a.ID]
	if s == nil {
		s = &standing{}
	}
	if a.Absent { // any listener seen since was another one
		s.forget()
	}
	a.Absent = true
	s.settle(a, e.Time, e.opt.Thresholds)
}

// retained are the totals of the listeners that are not shown: in front those
// whose namespace did not answer, then the closed ones, the latest first; as
// many as may be watched, as ports that open for a moment and never again must
// not fill the memory.
func (e *edition) retained() (out []model.RetainedTotals) {
	live := make(map[model.ListenerID]bool)
	for i := range e.Listeners {
		live[e.Listeners[i].ID] = true
	}
	closed := slices.Clone(e.roster.Retired)
	for _, n := range e.roster.Namespaces {
		n.Books(func(b *losses.Books) {
			for id, a := range b.Accounts() {
				switch {
				case live[id]:
				case e.roster.Silent[n.ID] && !a.Absent:
					out = append(out, a.Retain())
				default:
					closed = append(closed, facts.ClosedTotals{LastSeen: a.LastSeen, RetainedTotals: a.Retain()})
				}
			}
		})
	}
	slices.SortFunc(closed, func(a, b facts.ClosedTotals) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	for i, c := range closed {
		if most := e.opt.MaxListeners; most > 0 && i >= most {
			e.forget(c.ID)
			continue
		}
		out = append(out, c.RetainedTotals)
	}
	return out
}

// forget drops the account of a closed listener.
func (e *edition) forget(id model.ListenerID) {
	if n := e.roster.Namespace(id.NetNS); n != nil {
		n.Books(func(b *losses.Books) { b.Remove(id) })
	}
}

// absent adds the expected ports on which nothing listens, each with what its
// last listener's clients lost.
func (e *edition) absent() {
	for _, t := range e.Targets {
		if t.Up {
			continue
		}
		l := model.Listener{ID: model.ListenerID{NetNS: t.NetNS}, Port: t.Port, Expected: true}
		if n := e.roster.Namespace(t.NetNS); n != nil {
			sysctl, _ := n.Sysctl()
			n.Books(func(b *losses.Books) { l.Losses = lossesOf(b, t.Port, sysctl) })
		}
		e.Listeners = append(e.Listeners, l)
	}
}

// lossesOf are those of all addresses of a port.
func lossesOf(b *losses.Books, port uint16, sysctl map[string]int) *model.Losses {
	var out *model.Losses
	for id, a := range b.Accounts() {
		if id.Address.Port() != port {
			continue
		}
		if lost := b.Losses(a, false); lost != nil {
			out = cmp.Or(out, &model.Losses{})
			out.By = append(out.By, lost.By...)
			out.DroppedPackets += lost.DroppedPackets
			out.QueueResets += lost.QueueResets
			out.AbandonedRequests += lost.AbandonedRequests
		}
	}
	if out == nil {
		if !b.Spans() {
			return nil
		}
		out = &model.Losses{}
	}
	out.WorstCase = append(diagnosis.WorstCase(out, nil, sysctl), diagnosis.SeenRefused)
	return out
}
