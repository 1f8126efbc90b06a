package handshake

import "time"

// marks remember, for the longest time that an attempt stays open, in which ticks something
// happened: SYN cookies were sent, a listener dropped a packet.
type marks struct {
	ticks []int64 // by number modulo slots: the tick that was marked, plus one; nil before the first
}

func (c *marks) mark(from, to time.Duration) {
	if c.ticks == nil {
		c.ticks = make([]int64, slots)
	}
	last := int64(max(to, 0) / tick)
	first := max(int64(max(from, 0)/tick), last-slots+1)
	for n := first; n <= last; n++ {
		c.ticks[n%slots] = n + 1
	}
}

func (c *marks) at(at time.Duration) bool {
	n := int64(max(at, 0) / tick)
	return c.ticks != nil && c.ticks[n%slots] == n+1
}

// between reports whether it happened from one moment to another.
func (c *marks) between(from, to time.Duration) bool {
	for n := int64(max(from, 0) / tick); c.ticks != nil && n <= int64(max(to, 0)/tick); n++ {
		if c.ticks[n%slots] == n+1 {
			return true
		}
	}
	return false
}

// Drops notes that a listener of a port dropped SYNs or ACKs between two moments; 0 is any
// port.
func (t *Tracker) Drops(port uint16, from, to time.Duration) {
	if t.drops == nil {
		t.drops = make(map[uint16]*marks)
	}
	if t.drops[port] == nil {
		t.drops[port] = new(marks)
	}
	t.drops[port].mark(from, to)
}

// dropped reports whether a listener of a port may have dropped anything between two moments.
func (t *Tracker) dropped(port uint16, from, to time.Duration) bool {
	for _, p := range [2]uint16{0, port} {
		if m := t.drops[p]; m != nil && m.between(from, to) {
			return true
		}
	}
	return false
}
