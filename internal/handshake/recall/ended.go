// Package recall is what is remembered of clients that are not followed any more: those that were turned away, and how
// long the handshakes of an address take; and when something happened that concerns those that are. It is bounded.
package recall

import "time"

const (
	// MaxEnded bounds the clients that are remembered, at some 80 bytes each.
	MaxEnded = 10_000
	// endedFor is the longest time until another SYN comes, and that one's attempt ends: twice that of Linux between
	// two SYNs with tcp_syn_retries 6.
	endedFor = 140 * time.Second
)

// Ended remembers the clients that were counted as turned away: where the network loses
// packets, one of which nothing was heard for long may still send its SYN again, and is
// no other client.
type Ended struct {
	byName map[uint64]endedAttempt
	queue  []endedName // the oldest first; of a name that comes again, both
}

type endedAttempt struct{ first, at time.Duration }

type endedName struct {
	name uint64
	at   time.Duration
}

// Add remembers one whose first SYN came then, and reports whether it is new.
func (e *Ended) Add(at time.Duration, name uint64, first time.Duration) bool {
	if e.byName == nil {
		e.byName = make(map[uint64]endedAttempt)
	}
	if len(e.queue) == MaxEnded {
		e.drop()
	}
	_, again := e.byName[name]
	e.byName[name] = endedAttempt{first, at}
	e.queue = append(e.queue, endedName{name, at})
	return !again
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
	for len(e.queue) > 0 && at-e.queue[0].at >= endedFor {
		e.drop()
	}
	if len(e.queue) == 0 {
		e.byName, e.queue = nil, nil
	}
}

func (e *Ended) drop() {
	if oldest := e.queue[0]; e.byName[oldest.name].at == oldest.at {
		delete(e.byName, oldest.name)
	}
	e.queue = e.queue[1:]
}
