package room

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
)

// Shared is what the trackers of all network namespaces share: a stranger may have many, and flood each.
type Shared struct {
	*Pool
	sketch outcome.Sketch
	start  time.Time // zero where all have one clock
}

// sharedSlots are more than one tracker takes that has all it may: attempts, those that have proved it, those turned away.
const sharedSlots = 200_000

// NewShared has room for 200,000 clients, some 20 MiB, of trackers that began at different moments.
func NewShared() *Shared { return &Shared{Pool: NewPool(sharedSlots), start: time.Now()} }

// Alone is that of a single tracker.
func Alone() *Shared { return &Shared{Pool: NewPool(sharedSlots)} }

// Untracked is how many clients one of that name stands for, for which there is no room.
func (s *Shared) Untracked(at time.Duration, name uint64) float64 {
	if !s.start.IsZero() {
		at = time.Since(s.start)
	}
	return s.sketch.Add(at, name)
}

// Slots are those of a table. The least are there whatever others need.
type Slots struct {
	Share   *Share
	Step    int // by how many it grows
	Least   int
	granted int
}

// Has reports whether there are more than those that are used, or takes some.
func (p *Slots) Has(used int) bool {
	if used < p.granted {
		return true
	}
	if p.granted >= p.Least && !p.Share.Take(p.Step) {
		return false
	}
	p.granted += p.Step
	return true
}

// Keep gives back all but n.
func (p *Slots) Keep(n int) {
	p.Share.Give(max(p.granted, p.Least) - max(n, p.Least))
	p.granted = n
}

// Without is how many are left without a surplus.
func (p *Slots) Without(surplus int) int { return max(0, p.granted-surplus) }
