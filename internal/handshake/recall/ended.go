// Package recall is what is remembered of clients that are not followed any more: those that were turned away, and how
// long the handshakes of an address take; and when something happened that concerns those that are. It is bounded.
package recall

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/room"
	"github.com/tcpdiag/tcpdiag/internal/handshake/timers"
)

const (
	// MaxEnded bounds the clients that are remembered, at some 80 bytes each.
	MaxEnded = 10_000
	// endedFor covers the longest time until another SYN comes, and that one's attempt ends.
	endedFor = 2 * timers.MostSYN
)

// Ended remembers the clients that were counted as turned away: where the network loses
// packets, one of which nothing was heard for long may still send its SYN again, and is
// no other client. Of too many the oldest of a port goes that has more than an equal share.
type Ended struct {
	Share  *room.Share // of what all namespaces remember
	slots  int         // of it
	byName map[uint64]endedAttempt
	queues map[uint16][]endedName // of each port, the oldest first; of a name that comes again, both
	names  int                    // in all queues
	most   uint16                 // the port that had most when that was last asked
}

type endedAttempt struct{ first, at time.Duration }

type endedName struct {
	name uint64
	at   time.Duration
}

// Add remembers one whose first SYN came then, and reports whether it is new.
func (e *Ended) Add(at time.Duration, port uint16, name uint64, first time.Duration) bool {
	if e.byName == nil {
		e.byName, e.queues = make(map[uint64]endedAttempt), make(map[uint16][]endedName)
	}
	if e.names == MaxEnded || e.names == leastEnded+e.slots && !e.grow() {
		e.drop(e.greedy(port))
	}
	_, again := e.byName[name]
	e.byName[name] = endedAttempt{first, at}
	e.queues[port] = append(e.queues[port], endedName{name, at})
	e.names++
	return !again
}

// leastEnded are remembered whatever others need, and as many slots more are taken at once.
const leastEnded = 500

func (e *Ended) grow() bool {
	if !e.Share.Take(leastEnded) {
		return false
	}
	e.slots += leastEnded
	return true
}

// greedy is a port that has an equal share or more, of which there is always one: the newcomer, or one that has most.
func (e *Ended) greedy(newcomer uint16) uint16 {
	share := e.names / len(e.queues)
	if len(e.queues[newcomer]) >= share {
		return newcomer
	}
	if len(e.queues[e.most]) <= share {
		for port, queue := range e.queues {
			if len(queue) > len(e.queues[e.most]) {
				e.most = port
			}
		}
	}
	return e.most
}

// FirstSYN is when the first SYN of one came that is remembered.
func (e *Ended) FirstSYN(name uint64) (time.Duration, bool) {
	a, ok := e.byName[name]
	return a.first, ok
}

// Len is how many are remembered.
func (e *Ended) Len() int { return len(e.byName) }

// Advance forgets those of which nothing can come any more.
func (e *Ended) Advance(at time.Duration) {
	for port, queue := range e.queues {
		for ; len(queue) > 0 && at-queue[0].at >= endedFor; queue = queue[1:] {
			e.drop(port)
		}
	}
	if e.names == 0 {
		e.Share.Give(e.slots)
		*e = Ended{Share: e.Share}
	}
}

// drop forgets the oldest of a port.
func (e *Ended) drop(port uint16) {
	queue := e.queues[port]
	if oldest := queue[0]; e.byName[oldest.name].at == oldest.at {
		delete(e.byName, oldest.name)
	}
	e.names--
	if e.queues[port] = queue[1:]; len(queue) == 1 {
		delete(e.queues, port)
	}
}
