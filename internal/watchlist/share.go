package watchlist

import (
	"cmp"
	"slices"
)

// Claimant is a listener that would be watched.
type Claimant struct {
	NetNS    uint64
	Explicit bool // named by a port, a process or a target of the configuration
	Kept     bool // watched so far: it stays before a new one of its namespace comes
}

// Shares says which of the claimants are watched when there are more than limit,
// by their places in the list, in its order. Explicit ones come first; of the
// rest every namespace gets one in turn, so that 100 listeners in one of them
// displace no other namespace's. Within a namespace those watched so far come
// first, then the order of the list decides.
func Shares(claimants []Claimant, limit int) []int {
	order := make([]int, len(claimants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return first(claimants[a].Kept, claimants[b].Kept)
	})
	turn := make([]int, len(claimants)) // which of its namespace's it is
	taken := map[uint64]int{}
	for _, i := range order {
		if !claimants[i].Explicit {
			turn[i] = taken[claimants[i].NetNS]
			taken[claimants[i].NetNS]++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(
			first(claimants[a].Explicit, claimants[b].Explicit),
			cmp.Compare(turn[a], turn[b]),
			first(claimants[a].Kept, claimants[b].Kept),
		)
	})
	chosen := order[:min(max(limit, 0), len(order))]
	slices.Sort(chosen)
	return chosen
}

// first puts the one that is true in front.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
