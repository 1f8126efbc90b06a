package observer

import "time"

// recent are the latest readings of something, not changed once they are in.
type recent[T any] struct{ list []reading[T] }

type reading[T any] struct {
	at    time.Time
	value T
}

const (
	// apart is the least time between two readings that are compared: shares of
	// the time between two that are closer are noise.
	apart = 400 * time.Millisecond
	// remembered bounds how many are kept: in trouble there are ten a second.
	remembered = 12
)

func (r *recent[T]) push(at time.Time, value T) {
	old := max(0, len(r.list)+1-remembered)
	for old+1 < len(r.list) && at.Sub(r.list[old+1].at) > 2*apart {
		old++
	}
	r.list = append(r.list[old:], reading[T]{at, value}) // behind what others may still hold
}

// last is the latest reading; ok is false before the first.
func (r *recent[T]) last() (out reading[T], ok bool) {
	if len(r.list) == 0 {
		return out, false
	}
	return r.list[len(r.list)-1], true
}

// before is the one to compare the latest with: the latest that is far enough
// from it, else the oldest.
func (r *recent[T]) before() (out reading[T], ok bool) {
	n := len(r.list)
	if n < 2 {
		return out, false
	}
	for i := n - 2; i >= 0; i-- {
		if r.list[n-1].at.Sub(r.list[i].at) >= apart {
			return r.list[i], true
		}
	}
	return r.list[0], true
}

// previous is the one right before the latest.
func (r *recent[T]) previous() (out reading[T], ok bool) {
	n := len(r.list)
	if n < 2 {
		return out, false
	}
	return r.list[n-2], true
}
