package examine

import (
	"errors"
	"maps"
	"sync"
	"time"
)

// What examinations of one owner's processes may take of a core, after what has been saved up is spent: a hundred servers
// at once. Who starts one process after the other would have a core for them otherwise.
const (
	pacePart  = 0.1
	paceSaved = 10 * time.Second
	// maxPaced bounds the owners that are remembered.
	maxPaced = 256
)

// ErrPaced is an examination whose turn comes later.
var ErrPaced = errors.New("reading the configuration of many processes of its user or container takes its share of CPU time; this one's turn comes later")

// pace says for whom an examination may begin by the CPU time that those before have taken.
type pace struct {
	saved time.Duration
	now   func() time.Time

	mu   sync.Mutex
	paid map[string]time.Time // when all that was spent for an owner has been saved again
}

func newPace(now func() time.Time) *pace {
	return &pace{saved: paceSaved, now: now, paid: make(map[string]time.Time)}
}

// begins says whether one may begin for an owner.
func (p *pace) begins(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paid[owner].Sub(p.now()) < inTime(p.saved)
}

// spent notes what one has taken.
func (p *pace) spent(owner string, cost time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	paid, known := p.paid[owner]
	if !known {
		p.forget(now)
	}
	if paid.Before(now) {
		paid = now
	}
	p.paid[owner] = paid.Add(inTime(cost))
}

// forget makes room for one more owner: who has spent least is as one that is new.
func (p *pace) forget(now time.Time) {
	if len(p.paid) < maxPaced {
		return
	}
	maps.DeleteFunc(p.paid, func(_ string, paid time.Time) bool { return !paid.After(now) })
	if len(p.paid) < maxPaced {
		return
	}
	least, found := "", false
	for owner, paid := range p.paid {
		if !found || paid.Before(p.paid[least]) {
			least, found = owner, true
		}
	}
	delete(p.paid, least)
}

// inTime is how long it takes until so much CPU time has been saved up.
func inTime(cost time.Duration) time.Duration { return time.Duration(float64(cost) / pacePart) }
