package recall

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/room"
)

// Queue holds things until their time has come, in about the order in which they were put there.
type Queue[T any] struct {
	Share *room.Share // its slots are of it
	Most  int

	list []queued[T]
	head int
}

type queued[T any] struct {
	of T
	at time.Duration
}

// Add reports whether there was room.
func (q *Queue[T]) Add(at time.Duration, of *T) bool {
	if len(q.list)-q.head >= q.Most || len(q.list) == cap(q.list) && !q.grow() {
		return false
	}
	q.list = append(q.list, queued[T]{*of, at})
	return true
}

// leastQueue is by how many it grows at least.
const leastQueue = 128

func (q *Queue[T]) grow() bool {
	more := max(leastQueue, cap(q.list))
	if !q.Share.Take(more) {
		return false
	}
	q.list = append(make([]queued[T], 0, cap(q.list)+more), q.list...)
	return true
}

// Due takes out those whose time has come.
func (q *Queue[T]) Due(at time.Duration, end func(*T)) {
	for ; q.head < len(q.list) && q.list[q.head].at <= at; q.head++ {
		end(&q.list[q.head].of)
	}
	q.shrink()
}

// shrink gives room back, and when nobody is left the memory unless a quarter of it was needed.
func (q *Queue[T]) shrink() {
	switch left := len(q.list) - q.head; {
	case left == 0 && 4*q.head < cap(q.list):
		q.Share.Give(cap(q.list))
		q.list, q.head = nil, 0
	case left == 0:
		q.list, q.head = q.list[:0], 0
	case left <= q.head:
		copy(q.list, q.list[q.head:])
		q.list, q.head = q.list[:left], 0
	}
}

// Drop removes those that which names.
func (q *Queue[T]) Drop(which func(*T) bool) {
	rest := q.list[:q.head]
	for i := q.head; i < len(q.list); i++ {
		if !which(&q.list[i].of) {
			rest = append(rest, q.list[i])
		}
	}
	q.list = rest
	q.shrink()
}
