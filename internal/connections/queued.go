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
	waiting []waiting // while they are read
	cookies []uint64  // of all, the oldest first, once finished
	first   int       // how many may be the first: they came too close together to tell
	beyond  bool      // there were more than mostQueued
}

type waiting struct {
	cookie uint64
	age    time.Duration
}

const (
	// mostQueued bounds how many are remembered: strangers fill the queues, of each a dozen readings are
	// kept, and it is 4 KiB of each. Of longer queues it is not known for how long nobody was accepted.
	mostQueued = 512
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
	if len(q.waiting) == 0 {
		return
	}
	slices.SortFunc(q.waiting, func(a, b waiting) int { return cmp.Compare(b.age, a.age) })
	q.cookies = make([]uint64, len(q.waiting))
	for i, w := range q.waiting {
		q.cookies[i] = w.cookie
		if w.age >= q.waiting[0].age-jiffies-took {
			q.first = i + 1
		}
	}
	q.waiting = nil
}

// Stands reports whether nobody was taken out of the accept queue since an earlier reading; known is false
// where one of the two does not have all who waited. several: they wait in the queues of several sockets
// (SO_REUSEPORT), each of which has its first.
func (f *Found) Stands(earlier *Found, several bool) (stands, known bool) {
	was, now := &earlier.queue, &f.queue
	if was.beyond || now.beyond || len(was.cookies) == 0 || f.Counts.Partial || earlier.Counts.Partial {
		return false, false
	}
	first := was.cookies[:was.first]
	if several {
		first = was.cookies
	}
	there := make(map[uint64]bool, len(now.cookies))
	for _, cookie := range now.cookies {
		there[cookie] = true
	}
	return !slices.ContainsFunc(first, func(cookie uint64) bool { return !there[cookie] }), true
}
