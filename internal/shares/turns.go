package shares

import (
	"context"
	"slices"
	"sync"
)

// Turns let few work at once. Who waits gets his turn by owner: after one of an
// owner's come the others', however many that one has waiting.
type Turns struct {
	resource *Resource
	each     int // of one owner that may wait

	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{} // of each owner, the first first
	round   []string                   // owners with somebody waiting, whose turn is next first
}

// NewTurns lets n work at once, and of one owner that many wait.
func NewTurns(n, each int, of *Resource) *Turns {
	return &Turns{resource: of, each: each, free: n, waiting: make(map[string][]chan struct{})}
}

// Take waits for a turn, until ctx is done; false where there was none, or where too many
// of the same owner wait already. Who had a turn gives it back by Leave.
func (t *Turns) Take(ctx context.Context, owner string) bool {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return true
	}
	if len(t.waiting[owner]) >= t.each {
		t.mu.Unlock()
		t.resource.Refused(owner)
		return false
	}
	turn := make(chan struct{})
	if len(t.waiting[owner]) == 0 {
		t.round = append(t.round, owner)
	}
	t.waiting[owner] = append(t.waiting[owner], turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	return t.leaveQueue(owner, turn)
}

// Leave gives a turn to who is next.
func (t *Turns) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.round) == 0 {
		t.free++
		return
	}
	owner := t.round[0]
	t.round = t.round[1:]
	turn := t.waiting[owner][0]
	t.waiting[owner] = t.waiting[owner][1:]
	if len(t.waiting[owner]) == 0 {
		delete(t.waiting, owner)
	} else {
		t.round = append(t.round, owner)
	}
	close(turn)
}

// leaveQueue is for who waits no longer; true where the turn came just then.
func (t *Turns) leaveQueue(owner string, turn chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting[owner], turn)
	if i < 0 {
		return true
	}
	t.waiting[owner] = slices.Delete(t.waiting[owner], i, i+1)
	if len(t.waiting[owner]) == 0 {
		delete(t.waiting, owner)
		t.round = slices.DeleteFunc(t.round, func(o string) bool { return o == owner })
	}
	return false
}
