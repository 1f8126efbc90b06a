package recall

import "time"

const (
	// marksTick times marksTicks is the time that is remembered, no shorter than an attempt stays open.
	marksTick  = 125 * time.Millisecond
	marksTicks = 1024
)

// Marks remember, for the longest time that an attempt stays open, in which ticks something
// happened: SYN cookies were sent, a listener dropped a packet.
type Marks struct {
	ticks []int64 // by number modulo marksTicks: the tick that was marked, plus one; nil before the first
}

// Mark notes that it may have happened from one moment to another.
func (m *Marks) Mark(from, to time.Duration) {
	if m.ticks == nil {
		m.ticks = make([]int64, marksTicks)
	}
	last := int64(max(to, 0) / marksTick)
	first := max(int64(max(from, 0)/marksTick), last-marksTicks+1)
	for n := first; n <= last; n++ {
		m.ticks[n%marksTicks] = n + 1
	}
}

// At reports whether it may have happened at a moment.
func (m *Marks) At(at time.Duration) bool {
	n := int64(max(at, 0) / marksTick)
	return m.ticks != nil && m.ticks[n%marksTicks] == n+1
}

// Between reports whether it may have happened from one moment to another.
func (m *Marks) Between(from, to time.Duration) bool {
	for n := int64(max(from, 0) / marksTick); m.ticks != nil && n <= int64(max(to, 0)/marksTick); n++ {
		if m.ticks[n%marksTicks] == n+1 {
			return true
		}
	}
	return false
}
