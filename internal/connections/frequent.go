package connections

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// frequent counts the addresses that come most often, in a fixed room and without
// an allocation (Misra and Gries, 1982): of n additions each count is too low by
// at most n divided by one more than the places there are, and exact while there
// are no more addresses than places.
type frequent struct {
	addresses [frequentSlots]netip.Addr
	counts    [frequentSlots]int
}

const (
	frequentSlots = 8
	topPeers      = 5
)

func (f *frequent) add(a netip.Addr) {
	free := -1
	for i := range f.counts {
		switch {
		case f.counts[i] == 0:
			free = i
		case f.addresses[i] == a:
			f.counts[i]++
			return
		}
	}
	if free >= 0 {
		f.addresses[free], f.counts[free] = a, 1
		return
	}
	for i := range f.counts {
		f.counts[i]--
	}
}

// has reports whether an address is among them.
func (f *frequent) has(a netip.Addr) bool {
	for i, count := range f.counts {
		if count > 0 && f.addresses[i] == a {
			return true
		}
	}
	return false
}

// top are the addresses that come most often, the first the most often.
func (f *frequent) top() []model.PeerCount {
	var out []model.PeerCount
	for i, count := range f.counts {
		if count > 0 {
			out = append(out, model.PeerCount{Address: f.addresses[i].Unmap(), Connections: count})
		}
	}
	slices.SortFunc(out, func(a, b model.PeerCount) int {
		return cmp.Or(cmp.Compare(b.Connections, a.Connections), a.Address.Compare(b.Address))
	})
	return out[:min(len(out), topPeers)]
}

// majority is the address of more than half of all n, nil where there is none
// for certain.
func (f *frequent) majority(n int) *model.PeerCount {
	for i, count := range f.counts {
		if 2*count > n {
			return &model.PeerCount{Address: f.addresses[i].Unmap(), Connections: count}
		}
	}
	return nil
}
