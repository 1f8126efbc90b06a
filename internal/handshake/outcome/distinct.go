package outcome

import (
	"math"
	"sync"
	"time"
)

// distinct estimates how many different things it was shown, by linear counting
// (Whang et al., 1990): each sets one bit of a map by its hash, and the share of
// bits that are still clear shows how many have met.
type distinct struct {
	bits []uint64
	set  int
}

// newDistinct makes a map of 1<<order bits.
func newDistinct(order int) *distinct { return &distinct{bits: make([]uint64, 1<<(order-6))} }

// add reports whether the bit was clear.
func (d *distinct) add(hash uint64) bool {
	n := hash >> 6 & uint64(len(d.bits)-1)
	bit := uint64(1) << (hash & 63)
	if d.bits[n]&bit != 0 {
		return false
	}
	d.bits[n] |= bit
	d.set++
	return true
}

// weight is how many different things the next new bit stands for: the more
// bits are set, the more things meet one that is set.
func (d *distinct) weight() float64 {
	size := len(d.bits) * 64
	return float64(size) / float64(max(size-d.set, 1))
}

// count is the estimate; with all bits set it is a lower bound.
func (d *distinct) count() float64 {
	size := float64(len(d.bits) * 64)
	return size * math.Log(size/max(size-float64(d.set), 1))
}

func (d *distinct) reset() {
	clear(d.bits)
	d.set = 0
}

const (
	untrackedOrder = 22 // bits of the sketch: 512 KiB
	untrackedFor   = time.Minute
	// untrackedMost is for how many clients one may stand.
	untrackedMost = 8
)

// Sketch counts the clients for which there is no room, each once in a minute. One that a flood has filled
// begins again, empty: it would count nobody else's clients any more. It is of all namespaces.
type Sketch struct {
	mu    sync.Mutex
	met   *distinct // of this period
	began time.Duration
}

// Add returns how many clients this one stands for; 0 if it has been met.
func (s *Sketch) Add(at time.Duration, name uint64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.met == nil:
		s.met, s.began = newDistinct(untrackedOrder), at
	case at-s.began >= untrackedFor, s.met.weight() > untrackedMost:
		s.met.reset()
		s.began = at
	}
	weight := s.met.weight()
	if !s.met.add(name) {
		return 0
	}
	return weight
}
