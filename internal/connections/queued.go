package connections

import (
	"cmp"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// queue is who waits in an accept queue, by the sockets' cookies. Connections leave it in the order
// in which they came: as long as the first is there, nobody was accepted.
type queue struct {
	waiting []waiting // the oldest first once finished; nil where there were too many
	first   int       // how many may be the first: they came too close together to tell
	beyond  bool      // there were more than mostQueued
}

type waiting struct {
	cookie uint64
	age    time.Duration
}

const (
	// mostQueued bounds how many are remembered: the largest somaxconn that is usual.
	mostQueued = 4096
	// jiffies is how far the ages of two sockets may be off (tcp_jiffies32, at 100 Hz).
	jiffies = 20 * time.Millisecond
)

func (q *queue) add(s *sockdiag.Socket) {
	if len(q.waiting) == mostQueued || s.Cookie == 0 {
		q.waiting, q.beyond = nil, true
	}
	if !q.beyond {
		q.waiting = append(q.waiting, waiting{s.Cookie, s.Info.LastDataSent})
	}
}

// finish orders them. Sockets are read one after the other for as long as took: by so much may the age of
// one that was read later be too high.
func (q *queue) finish(took time.Duration) {
	slices.SortFunc(q.waiting, func(a, b waiting) int { return cmp.Compare(b.age, a.age) })
	for q.first < len(q.waiting) && q.waiting[q.first].age >= q.waiting[0].age-jiffies-took {
		q.first++
	}
}

// Stands reports whether nobody was taken out of the accept queue since an earlier reading; known is false
// where one of the two does not have all who waited. several: they wait in the queues of several sockets
// (SO_REUSEPORT), each of which has its first.
func (f *Found) Stands(earlier *Found, several bool) (stands, known bool) {
	was, now := &earlier.queue, &f.queue
	if was.beyond || now.beyond || len(was.waiting) == 0 || f.Counts.Partial || earlier.Counts.Partial {
		return false, false
	}
	first := was.waiting[:was.first]
	if several {
		first = was.waiting
	}
	there := make(map[uint64]bool, len(now.waiting))
	for _, w := range now.waiting {
		there[w.cookie] = true
	}
	return !slices.ContainsFunc(first, func(w waiting) bool { return !there[w.cookie] }), true
}
