package connections

import (
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// frequent counts the addresses that come most often, in a fixed room and without
// an allocation (Misra and Gries, 1982): of n additions each count is too low by
// at most n divided by one more than the places there are, and exact while there
// are no more addresses than places.
type frequent struct {
	addresses [frequentPlaces]netip.Addr
	counts    [frequentPlaces]int
}

const frequentPlaces = 8

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

// majority is the address of more than half of all n, nil where there is none
// for certain.
func (f *frequent) majority(n int) *model.PeerShare {
	for i, count := range f.counts {
		if 2*count > n {
			return &model.PeerShare{Address: f.addresses[i].Unmap(), Connections: count}
		}
	}
	return nil
}
