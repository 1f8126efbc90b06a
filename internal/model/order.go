package model

import (
	"cmp"
	"slices"
)

// ByAddress orders listeners by port, address, device and namespace, so that
// two snapshots of the same machine can be compared line by line. The list
// itself is left as it is.
func ByAddress(in []Listener) []*Listener {
	out := make([]*Listener, len(in))
	for i := range in {
		out[i] = &in[i]
	}
	slices.SortStableFunc(out, CompareAddress)
	return out
}

// CompareAddress is the order of ByAddress.
func CompareAddress(a, b *Listener) int {
	return cmp.Or(
		cmp.Compare(a.Port, b.Port),
		a.ID.Address.Addr().Compare(b.ID.Address.Addr()),
		cmp.Compare(a.ID.Device, b.ID.Device),
		cmp.Compare(a.ID.NetNS, b.ID.NetNS),
	)
}
