package model

import "math"

// fillClassic are the upper bounds of the classic buckets; 1 is full.
func fillClassic() [5]float64 { return [5]float64{0, .1, .5, .8, 1} }

// The native buckets are those of Prometheus's schema 3: bucket i holds
// (2^((i-1)/8), 2^(i/8)]. They reach down to a single connection in a queue of
// 65,536 and up to a queue that races past its capacity.
const (
	FillSchema    = 3
	fillMinBucket = -16 << FillSchema
	fillMaxBucket = 1 << FillSchema
	fillBuckets   = fillMaxBucket - fillMinBucket + 1
)

// FillHistogram counts the samples of an accept queue by their ratio
// (length / capacity), in classic and native buckets. A fixed-size value:
// observing allocates nothing.
type FillHistogram struct {
	Count   uint64
	Sum     float64
	Zero    uint64 // samples of an empty queue
	classic [5]uint64
	native  [fillBuckets]uint64
}

// Observe counts one sample.
func (h *FillHistogram) Observe(ratio float64) {
	h.Count++
	h.Sum += ratio
	for i, bound := range fillClassic() {
		if ratio <= bound {
			h.classic[i]++
			break
		}
	}
	if ratio <= 0 {
		h.Zero++
		return
	}
	i := int(math.Ceil(math.Log2(ratio) * (1 << FillSchema)))
	h.native[min(max(i, fillMinBucket), fillMaxBucket)-fillMinBucket]++
}

// Classic returns the cumulative count for each upper bound.
func (h *FillHistogram) Classic() map[float64]uint64 {
	out := make(map[float64]uint64, len(h.classic))
	var sum uint64
	for i, bound := range fillClassic() {
		sum += h.classic[i]
		out[bound] = sum
	}
	return out
}

// Native returns the count of each non-empty bucket by its index in schema
// FillSchema.
func (h *FillHistogram) Native() map[int]uint64 {
	out := make(map[int]uint64)
	for i, n := range h.native {
		if n > 0 {
			out[i+fillMinBucket] = n
		}
	}
	return out
}
