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

func (h *history) first() Checkpoint { return h.past[0] }

func (h *history) last() Checkpoint { return h.past[len(h.past)-1] }
