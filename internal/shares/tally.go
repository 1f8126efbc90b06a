package shares

import "sync"

// Tally counts what each owner has. It bounds nothing itself.
type Tally struct {
	mu    sync.Mutex
	all   int
	owner map[string]int
}

// Of is how much there is in all, and of one owner.
func (t *Tally) Of(owner string) (all, its int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all, t.owner[owner]
}

// Add adds to an owner's, or takes away.
func (t *Tally) Add(owner string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owner == nil {
		t.owner = make(map[string]int)
	}
	t.all += n
	if t.owner[owner] += n; t.owner[owner] == 0 {
		delete(t.owner, owner)
	}
}

// Most is the owner that has most; "" where nobody has anything.
func (t *Tally) Most() (most string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for owner, n := range t.owner {
		if n > t.owner[most] {
			most = owner
		}
	}
	return most
}
