// Package hangs divides what may be begun for strangers and may then stand still for ever: the child processes that
// read their memory (memory), or their files.
package hangs

import (
	"errors"
	"sync"
	"time"
)

const (
	// suspectFor is how long an owner is a suspect after what read for it hung.
	suspectFor = time.Hour
	// maxSuspects bounds the owners that are remembered.
	maxSuspects = 256
)

// Why nothing may be begun for an owner.
var (
	ErrBefore = errors.New("what was begun for it before has not ended")
	ErrOthers = errors.New("reading the files or the memory of other users' processes hangs; this one's turn comes when that ends")
)

// Slots bound what reads for strangers and may stand still for ever, so that not even SIGKILL
// ends it: nothing of it can be taken away for another. So the owners for which something hung are
// suspects, and share the usual slots. Everybody else gets a slot beyond these, too, as long as there is any: who wants
// to take them all needs as many owners, none of which has done it before.
type Slots struct {
	each, usual, most int
	now               func() time.Time

	mu     sync.Mutex
	all    int
	owners map[string]*hanging
}

// hanging is what is known of an owner.
type hanging struct {
	slots int       // taken
	hung  time.Time // the latest, zero for none
}

// NewSlots are that many slots, usual ones and at most, each of an owner.
func NewSlots(each, usual, most int, now func() time.Time) *Slots {
	return &Slots{each: each, usual: usual, most: most, now: now, owners: make(map[string]*hanging)}
}

// Begin takes a slot for an owner, or says why there is none. Whoever has one gives it back by End.
func (h *Slots) Begin(owner string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owners[owner]
	switch {
	case o != nil && (o.slots >= h.each || o.slots > 0 && h.all >= h.usual):
		return ErrBefore
	case h.all >= h.most, h.all >= h.usual && o != nil && h.suspect(o):
		return ErrOthers
	case o == nil:
		h.forget()
		o = &hanging{}
		h.owners[owner] = o
	}
	o.slots++
	h.all++
	return nil
}

// Hung notes that what was begun for an owner does not end, where it has not ended by now.
func (h *Slots) Hung(owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o := h.owners[owner]; o != nil && o.slots > 0 {
		o.hung = h.now()
	}
}

// End gives a slot back.
func (h *Slots) End(owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owners[owner]
	h.all--
	if o.slots--; o.slots == 0 && !h.suspect(o) {
		delete(h.owners, owner)
	}
}

// Taken is how many slots are.
func (h *Slots) Taken() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}

func (h *Slots) suspect(o *hanging) bool {
	return !o.hung.IsZero() && h.now().Sub(o.hung) < suspectFor
}

// forget makes room for one more owner: of those that have no slot who has been a suspect for longest goes.
func (h *Slots) forget() {
	if len(h.owners) < maxSuspects {
		return
	}
	oldest, found := "", false
	for owner, o := range h.owners {
		if o.slots == 0 && (!found || o.hung.Before(h.owners[oldest].hung)) {
			oldest, found = owner, true
		}
	}
	if found {
		delete(h.owners, oldest)
	}
}
