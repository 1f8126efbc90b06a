package watchlist

import (
	"cmp"
	"fmt"
	"slices"
)

// Claimant is a listener that would be watched.
type Claimant struct {
	Owner    string // whose its namespace is; empty: the namespace's own
	NetNS    uint64
	User     uint32 // who made its socket
	Explicit bool   // named by a port, a process or a target of the configuration
	Watched  bool   // watched so far: it stays before a new one of its user comes
}

// Shares says which of the claimants are watched when there are more than limit,
// by their places in the list, in its order. Explicit ones come first; of the
// rest every owner gets one in turn, and of an owner's every namespace, so that 100 listeners in
// one namespace displace no other's, nor a hundred namespaces that one owner has made
// another owner's, and of a namespace's every user. Of a user's there those watched so far come
// first, then the order of the list decides.
func Shares(claimants []Claimant, limit int) []int {
	order := make([]int, len(claimants))
	for i := range order {
		order[i] = i
	}
	before := func(a, b int) int { return first(claimants[a].Watched, claimants[b].Watched) }
	slices.SortStableFunc(order, before)
	var turn []int
	inTurns := func(group func(*Claimant) string) {
		turn = turns(claimants, order, group)
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(turn[a], turn[b]), before(a, b)) })
	}
	inTurns(func(c *Claimant) string { return fmt.Sprint(c.NetNS, " ", c.User) })
	inTurns(func(c *Claimant) string { return fmt.Sprint(c.NetNS) })
	turn = turns(claimants, order, func(c *Claimant) string { return cmp.Or(c.Owner, fmt.Sprint(c.NetNS)) })
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(
			first(claimants[a].Explicit, claimants[b].Explicit),
			cmp.Compare(turn[a], turn[b]),
			before(a, b),
		)
	})
	chosen := order[:min(max(limit, 0), len(order))]
	slices.Sort(chosen)
	return chosen
}

// turns are which of its group's each claimant is, in that order; explicit ones take no turn.
func turns(claimants []Claimant, order []int, group func(*Claimant) string) []int {
	turn, taken := make([]int, len(claimants)), make(map[string]int)
	for _, i := range order {
		if c := &claimants[i]; !c.Explicit {
			turn[i] = taken[group(c)]
			taken[group(c)]++
		}
	}
	return turn
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
