package clients

import (
	"cmp"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// admit leaves no more namespaces than there may be taps. Where there are more, the owner with the most of them loses one,
// again and again: first those without a tap, then the one that was tapped last.
func (f *Follower) admit(wanted []Where, s *model.Snapshot) (admitted []Where) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beyond = max(0, len(wanted)-maxNamespaces)
	if f.beyond == 0 {
		return wanted
	}
	whose := ownersOf(s)
	order := slices.Clone(wanted)
	slices.SortStableFunc(order, func(a, b Where) int {
		pa, pb := f.namespaces[a.NetNS], f.namespaces[b.NetNS]
		switch {
		case pa == nil && pb == nil:
			return cmp.Compare(b.NetNS, a.NetNS)
		case pa == nil:
			return -1
		case pb == nil:
			return 1
		}
		return cmp.Compare(pb.number, pa.number)
	})
	surplus := make(map[uint64]bool)
	for _, i := range shares.Surplus(len(order), maxNamespaces, func(i int) string {
		return cmp.Or(whose[order[i].NetNS], shares.OwnerOfNetNS(order[i].NetNS))
	}) {
		surplus[order[i].NetNS] = true
	}
	return slices.DeleteFunc(wanted, func(w Where) bool { return surplus[w.NetNS] })
}

// ownersOf is whose each namespace is. Where listeners of several are, it is that of the owner that is in the fewest:
// who listens in a namespace of others does not make it his.
func ownersOf(s *model.Snapshot) map[uint64]string {
	in := make(map[uint64]map[string]bool)
	count := make(map[string]int)
	for i := range s.Listeners {
		l := &s.Listeners[i]
		owner := shares.OwnerOf(l)
		if in[l.ID.NetNS] == nil {
			in[l.ID.NetNS] = make(map[string]bool)
		}
		if !in[l.ID.NetNS][owner] {
			in[l.ID.NetNS][owner] = true
			count[owner]++
		}
	}
	out := make(map[uint64]string, len(in))
	for netns, owners := range in {
		best := ""
		for owner := range owners {
			if best == "" || cmp.Or(cmp.Compare(count[owner], count[best]), cmp.Compare(owner, best)) < 0 {
				best = owner
			}
		}
		out[netns] = best
	}
	return out
}
