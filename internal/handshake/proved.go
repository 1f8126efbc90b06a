package handshake

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// mostQuick bounds the questions between two reads of the ring whether those that end were
// answered: some 1,300 a second, 5 µs each.
const mostQuick = 64

// mostProved bounds Tracker.proved, to some five megabytes.
const mostProved = 1 << 16

// proveByACK takes in that a client has acknowledged a SYN-ACK which was not read, as each
// FIN does.
func (t *Tracker) proveByACK(at time.Duration, i int32, s *packet.Segment) {
	a := t.table.at(i)
	a.suppose()
	a.signs |= answered
	a.segment(at, s, false)
	if at-a.first >= firstAsk && t.quick < mostQuick && a.has(talked|finished) {
		t.quick++
		t.inquire(a) // was it answered? a quicker one was not asked to wait
	}
	t.restage(a)
	t.endpoints.of(a).letIn = true
	if t.unread.On && t.proved.Add(at, a) {
		t.table.remove(i)
		return
	}
	t.table.move(i, at) // by its turn the counters have been read again
}

// comeBack puts those into the table again that have yet to be judged. Those that find no
// room, or whose client has used its port again, stay: nothing more will be seen of them.
func (t *Tracker) comeBack() {
	t.proved.Drop(func(a *attempt) bool {
		k := key{a.client, a.clientPort, a.endpoint}
		if t.table.find(&k) != none {
			return false
		}
		i := t.table.add(&k, a.first+ms(a.lastSYN))
		if i != none {
			t.table.at(i).restore(a)
		}
		return i != none
	})
}
