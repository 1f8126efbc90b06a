package handshake

import "time"

// cookieMarks remember, for the longest time that an attempt stays open, in
// which ticks SYN cookies were sent.
type cookieMarks struct {
	ticks []int64 // by number modulo slots: the tick that was marked, plus one; nil before the first
}

func (c *cookieMarks) mark(from, to time.Duration) {
	if c.ticks == nil {
		c.ticks = make([]int64, slots)
	}
	last := int64(max(to, 0) / tick)
	first := max(int64(max(from, 0)/tick), last-slots+1)
	for n := first; n <= last; n++ {
		c.ticks[n%slots] = n + 1
	}
}

func (c *cookieMarks) at(at time.Duration) bool {
	n := int64(max(at, 0) / tick)
	return c.ticks != nil && c.ticks[n%slots] == n+1
}
