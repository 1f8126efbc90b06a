package facts

import "time"

// Recent are the latest readings of something, not changed once they are in.
type Recent[T any] struct{ List []Reading[T] }

// Reading is a value with the time that it is of.
type Reading[T any] struct {
	At    time.Time
	Value T
}

const (
	// Apart is the least time between two readings that are compared: shares of
	// the time between two that are closer are noise.
	Apart = 400 * time.Millisecond
	// remembered bounds how many are kept: in trouble there are ten a second.
	remembered = 12
)

// Push takes another reading, and forgets the oldest of too many.
func (r *Recent[T]) Push(at time.Time, value T) {
	old := max(0, len(r.List)+1-remembered)
	for old+1 < len(r.List) && at.Sub(r.List[old+1].At) > 2*Apart {
		old++
	}
	r.List = append(r.List[old:], Reading[T]{at, value}) // behind what others may still hold
}

// Last is the latest reading; ok is false before the first.
func (r *Recent[T]) Last() (out Reading[T], ok bool) {
	if len(r.List) == 0 {
		return out, false
	}
	return r.List[len(r.List)-1], true
}

// Before is the one to compare the latest with: the latest that is far enough
// from it, else the oldest.
func (r *Recent[T]) Before() (out Reading[T], ok bool) {
	n := len(r.List)
	if n < 2 {
		return out, false
	}
	for i := n - 2; i >= 0; i-- {
		if r.List[n-1].At.Sub(r.List[i].At) >= Apart {
			return r.List[i], true
		}
	}
	return r.List[0], true
}

// Previous is the one right before the latest.
func (r *Recent[T]) Previous() (out Reading[T], ok bool) {
	n := len(r.List)
	if n < 2 {
		return out, false
	}
	return r.List[n-2], true
}
