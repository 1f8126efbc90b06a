package losses

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
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

// allot gives each share its part of total, by its weight, and returns what the
// weights could not take. Ties go by address, so that the same numbers always
// split alike.
func allot(shares []share, total uint64, weight func(*share) uint64) (left uint64) {
	weights := make([]uint64, len(shares))
	for i := range shares {
		weights[i] = weight(&shares[i])
	}
	left = total
	for i, n := range Allot(total, weights, func(x, y int) int { return cmp.Compare(shares[x].id.String(), shares[y].id.String()) }) {
		shares[i].packets += n
		left -= n
	}
	return left
}

// mulDiv is a·b/c without overflow, for a ≤ c.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}

// share is what one listener brings to the split of a tick.
type share struct {
	id         model.ListenerID
	watched    bool
	fresh, old uint64 // increments of this tick, and those carried from the one before
	packets    uint64 // allotted
	vouched    uint64 // of packets, those that rest on carried increments
}

func (s *share) room() uint64 { return s.fresh + s.old - s.packets }

// Allot divides total in proportion to the weights by largest remainder
// (Hamilton's method), none beyond its weight: where they sum to less than
// total, each gets its weight. tie orders, by index, those of equal remainder.
func Allot(total uint64, weights []uint64, tie func(i, j int) int) []uint64 {
	var sum uint64
	for _, w := range weights {
		sum += w
	}
	if sum <= total {
		return weights
	}
	parts, remainders, order := make([]uint64, len(weights)), make([]uint64, len(weights)), make([]int, len(weights))
	rest := total
	for i, w := range weights {
		hi, lo := bits.Mul64(total, w)
		parts[i], remainders[i] = bits.Div64(hi, lo, sum)
		rest -= parts[i]
		order[i] = i
	}
	// Less is left than weights have a remainder, and a part with a remainder is
	// below its weight: one more each never exceeds it.
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(remainders[j], remainders[i]), tie(i, j))
	})
	for _, i := range order[:rest] {
		parts[i]++
	}
	return parts
}
