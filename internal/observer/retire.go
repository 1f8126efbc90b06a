package observer

import (
	"cmp"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// retire settles what vanished listeners left, returns their totals, the latest
// to vanish first, and forgets them after an hour; sooner when there are more
// than listeners may be watched, as ports that open for a moment and never again
// must not fill the memory.
//
// In front are the totals of those whose namespace did not tell whether they
// listen: they are not shown, and they have not vanished.
func (s *Sampler) retire(sc *scan) (gone []model.RetainedTotals) {
	live := make(map[*account]bool, len(sc.kept))
	for _, c := range sc.kept {
		live[c.account] = true
	}
	var former []*account
	for _, sp := range s.spaces {
		s.forgetFormer(sp)
		for id, a := range sp.accounts {
			switch {
			case live[a]:
			case sc.mute[sp] && !a.absent:
				gone = append(gone, model.RetainedTotals{ID: id, Totals: a.totals()})
			case !a.lastSeen.IsZero() && sc.at.Sub(a.lastSeen) > retention:
				delete(sp.accounts, id)
			default:
				s.leave(sp, a, sc)
				former = append(former, a)
			}
		}
	}
	s.orphans = slices.DeleteFunc(s.orphans, func(a *account) bool { return sc.at.Sub(a.lastSeen) > retention })
	return append(gone, s.retain(append(former, s.orphans...))...)
}

// leave settles what one has left that is not there at this scan.
func (s *Sampler) leave(sp *space, a *account, sc *scan) {
	if a.lastSeen.IsZero() {
		a.lastSeen = sc.at
	}
	if a.absent { // whatever has come and gone since was another one
		a.forget()
	}
	a.absent = true
	if sp.awake() {
		a.settle(func(bool) model.Cause { return sp.cause(a, a.looks.last.Listener, false) })
		a.ledger.close(s.scans, sp.past[0].scan)
	}
}

// retain keeps as many as listeners may be watched, and forgets the others.
func (s *Sampler) retain(former []*account) (gone []model.RetainedTotals) {
	slices.SortFunc(former, func(a, b *account) int {
		return cmp.Or(b.lastSeen.Compare(a.lastSeen), cmp.Compare(a.id.String(), b.id.String()))
	})
	for i, a := range former {
		if s.opt.MaxListeners > 0 && i >= s.opt.MaxListeners {
			delete(s.spaceOf(a.id.NetNS).accounts, a.id)
			s.orphans = slices.DeleteFunc(s.orphans, func(o *account) bool { return o == a })
			continue
		}
		gone = append(gone, model.RetainedTotals{ID: a.id, Totals: a.totals()})
	}
	return gone
}
