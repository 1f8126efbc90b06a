package losses

import (
	"cmp"
	"math/bits"
	"slices"
)

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
