package outcome

import "time"

// DelayBounds are the upper bounds, in seconds, of Delays. Between them are the
// times at which clients on Linux repeat their SYN: 1, 2, 3, 4, 5, 7, 11, 19 s
// (6.5 and newer, tcp_syn_linear_timeouts) or 1, 3, 7, 15, 31 s.
func DelayBounds() [10]float64 {
	return [10]float64{.25, .75, 1.5, 2.5, 3.5, 5.5, 9, 17, 25, 50}
}

// Delays is a histogram of how long clients of outcome Delayed waited: from
// their first SYN until the kernel had a socket for them, less a round trip.
type Delays struct {
	Count uint64
	Sum   float64 // seconds
	// Shortest and Longest are those of the clients counted since the report before,
	// 0 if there were none.
	Shortest, Longest time.Duration
	buckets           [10]uint64
}

func (d *Delays) observe(delay time.Duration) {
	s := delay.Seconds()
	if d.Longest == 0 || delay < d.Shortest {
		d.Shortest = delay
	}
	d.Longest = max(d.Longest, delay)
	d.Count++
	d.Sum += s
	for i, bound := range DelayBounds() {
		if s <= bound {
			d.buckets[i]++
			return
		}
	}
}

// Buckets returns the cumulative count for each bound of DelayBounds.
func (d *Delays) Buckets() [10]uint64 {
	out := d.buckets
	for i := 1; i < len(out); i++ {
		out[i] += out[i-1]
	}
	return out
}

// ResponseBounds are the upper bounds, in seconds, of Responses.
func ResponseBounds() [11]float64 {
	return [11]float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}

// Responses is a histogram of how long clients waited for the first byte of their answer,
// from their first SYN on, queues included.
type Responses struct {
	Count   uint64
	Sum     float64 // seconds
	buckets [11]uint64
}

func (r *Responses) observe(took time.Duration) {
	s := took.Seconds()
	r.Count++
	r.Sum += s
	for i, bound := range ResponseBounds() {
		if s <= bound {
			r.buckets[i]++
			return
		}
	}
}

// Buckets returns the cumulative count for each bound of ResponseBounds.
func (r *Responses) Buckets() [11]uint64 {
	out := r.buckets
	for i := 1; i < len(out); i++ {
		out[i] += out[i-1]
	}
	return out
}
