package diagnosis

import (
	"cmp"
	"math/bits"
	"slices"
)

// split allots total packets to the shares and returns how many are left.
// The increments of this tick go first, in proportion; only what they cannot
// account for falls to increments carried from the tick before. (The other
// way round, the over-count of a listener that drops final ACKs would draw the
// next tick's packets away from the listener that dropped them.)
func (a *Attribution) split(total uint64) (left uint64) {
	left = allot(a.shares, total, func(s *share) uint64 { return s.fresh })
	if left == 0 {
		return 0
	}
	before := make([]uint64, len(a.shares))
	for i := range a.shares {
		before[i] = a.shares[i].packets
	}
	left = allot(a.shares, left, func(s *share) uint64 { return s.room() })
	for i := range a.shares {
		a.shares[i].vouched = a.shares[i].packets - before[i]
	}
	return left
}

// allot divides total over the shares in proportion to their weights by
// largest remainder (Hamilton's method), none beyond its weight, and returns
// what the weights could not take.
func allot(shares []share, total uint64, weight func(*share) uint64) (left uint64) {
	var sum uint64
	for i := range shares {
		sum += weight(&shares[i])
	}
	if sum <= total {
		for i := range shares {
			shares[i].packets += weight(&shares[i])
		}
		return total - sum
	}
	order := make([]int, len(shares))
	rest := total
	for i := range shares {
		s := &shares[i]
		hi, lo := bits.Mul64(total, weight(s))
		quota, remainder := bits.Div64(hi, lo, sum)
		s.packets += quota
		s.remainder = remainder
		rest -= quota
		order[i] = i
	}
	// Fewer packets are left than shares have a remainder, and a share with a
	// remainder is below its weight: one more each never exceeds it. Ties go by
	// address, so that the same numbers always split alike.
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Or(
			cmp.Compare(shares[y].remainder, shares[x].remainder),
			cmp.Compare(shares[x].id.String(), shares[y].id.String()))
	})
	for _, i := range order[:rest] {
		shares[i].packets++
	}
	return 0
}

// mulDiv is a·b/c without overflow, for a ≤ c.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}
