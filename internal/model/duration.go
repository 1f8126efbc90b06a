package model

import "time"

// DurationBounds are the upper bounds, in seconds, of DurationHistogram: from
// an exact request (microseconds) to a walk of millions of sockets.
func DurationBounds() [10]float64 {
	return [10]float64{1e-6, 5e-6, 2e-5, 1e-4, 5e-4, 2e-3, 1e-2, 5e-2, .25, 1}
}

// DurationHistogram is a fixed-size histogram of how long something took.
type DurationHistogram struct {
	Count   uint64
	Sum     float64 // seconds
	buckets [10]uint64
}

// Observe counts one duration.
func (h *DurationHistogram) Observe(d time.Duration) {
	s := d.Seconds()
	h.Count++
	h.Sum += s
	for i, bound := range DurationBounds() {
		if s <= bound {
			h.buckets[i]++
			return
		}
	}
}

// Buckets returns the cumulative count for each upper bound in seconds.
func (h *DurationHistogram) Buckets() map[float64]uint64 {
	out := make(map[float64]uint64, len(h.buckets))
	var sum uint64
	for i, bound := range DurationBounds() {
		sum += h.buckets[i]
		out[bound] = sum
	}
	return out
}
