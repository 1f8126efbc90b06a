package losses

import (
	"slices"
	"time"
)

// Checkpoint is what a namespace's counters were at a moment, together with what
// the listeners had lost by then.
type Checkpoint struct {
	Number       int
	At           time.Time
	counters     packed
	Unattributed uint64
	// Unwatched is the sum of the drop counters of the sockets that are not watched.
	Unwatched uint64
}

// history keeps the checkpoints of the window and the one before it.
type history struct{ past []Checkpoint }

func (h *history) add(c Checkpoint, window time.Duration) {
	h.past = append(h.past, c)
	first := 0
	for first+2 < len(h.past) && c.At.Sub(h.past[first+1].At) >= window {
		first++
	}
	h.past = slices.Delete(h.past, 0, first)
}

// mostLists is how many lists of names the checkpoints have at most, but for one: who administers a namespace names the rules of its netfilter,
// and may give others each second.
const mostLists = 8

// lists is how many they have.
func (h *history) lists() (n int) {
	for i := range h.past {
		if i == 0 || !h.past[i].counters.shares(&h.past[i-1].counters) {
			n++
		}
	}
	return n
}

func (h *history) first() Checkpoint { return h.past[0] }

func (h *history) last() Checkpoint { return h.past[len(h.past)-1] }
