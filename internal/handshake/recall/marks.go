package recall

import "time"

// Tick times Ticks is the time that is remembered, and the longest that an attempt stays open without being looked at.
const (
	Tick  = 125 * time.Millisecond
	Ticks = 1024
)

// Marks remember, for the longest time that an attempt stays open, in which ticks something
// happened: SYN cookies were sent, a listener dropped a packet.
type Marks struct {
	ticks []int64 // by number modulo Ticks: the tick that was marked, plus one; nil before the first
}

// Mark notes that it may have happened from one moment to another.
func (m *Marks) Mark(from, to time.Duration) {
	if m.ticks == nil {
		m.ticks = make([]int64, Ticks)
	}
	last := int64(max(to, 0) / Tick)
	first := max(int64(max(from, 0)/Tick), last-Ticks+1)
	for n := first; n <= last; n++ {
		m.ticks[n%Ticks] = n + 1
	}
}

// At reports whether it may have happened at a moment.
func (m *Marks) At(at time.Duration) bool {
	n := int64(max(at, 0) / Tick)
	return m.ticks != nil && m.ticks[n%Ticks] == n+1
}

// Between reports whether it may have happened from one moment to another.
func (m *Marks) Between(from, to time.Duration) bool {
	for n := int64(max(from, 0) / Tick); m.ticks != nil && n <= int64(max(to, 0)/Tick); n++ {
		if m.ticks[n%Ticks] == n+1 {
			return true
		}
	}
	return false
}
