package handshake

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// proved holds the clients that have ended their connection, until the counters have been
// read that show whether they had one: if one of them was moved by a dropped ACK, they
// come back. They leave the table at once, as they are most of those that are followed, and
// a table of few stays in the processor's cache.
type proved struct {
	queue []provedAttempt // in the order of at, but for packets that overtake each other
	head  int
}

type provedAttempt struct {
	attempt
	at time.Duration
}

// mostQuick bounds the questions between two reads of the ring whether those that end were
// answered: some 1,300 a second, 5 µs each.
const mostQuick = 64

// mostProved bounds the queue, to some five megabytes.
const mostProved = 1 << 16

// add reports whether there was room.
func (p *proved) add(at time.Duration, a *attempt) bool {
	if len(p.queue)-p.head >= mostProved {
		return false
	}
	p.queue = append(p.queue, provedAttempt{*a, at})
	return true
}

// due takes those out that have proved it by then.
func (p *proved) due(at time.Duration, end func(*attempt)) {
	for ; p.head < len(p.queue) && p.queue[p.head].at <= at; p.head++ {
		end(&p.queue[p.head].attempt)
	}
	p.shrink()
}

// shrink gives room back, and when nobody is left the memory unless a quarter of it was needed.
func (p *proved) shrink() {
	switch left := len(p.queue) - p.head; {
	case left == 0 && 4*p.head < cap(p.queue):
		p.queue, p.head = nil, 0
	case left == 0:
		p.queue, p.head = p.queue[:0], 0
	case left <= p.head:
		copy(p.queue, p.queue[p.head:])
		p.queue, p.head = p.queue[:left], 0
	}
}

// drop removes those that which names.
func (p *proved) drop(which func(*attempt) bool) {
	kept := p.queue[:p.head]
	for i := p.head; i < len(p.queue); i++ {
		if !which(&p.queue[i].attempt) {
			kept = append(kept, p.queue[i])
		}
	}
	p.queue = kept
	p.shrink()
}

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
	if t.unread.on && t.proved.add(at, a) {
		t.table.remove(i)
		return
	}
	t.table.move(i, at) // by its turn the counters have been read again
}

// comeBack puts those into the table again that have yet to be judged. Those that find no
// room, or whose client has used its port again, stay: nothing more will be seen of them.
func (t *Tracker) comeBack() {
	t.proved.drop(func(a *attempt) bool {
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
