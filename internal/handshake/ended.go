package handshake

import "time"

const (
	// maxEnded bounds the clients that are remembered, at some 60 bytes each.
	maxEnded = 20_000
	// endedFor is the longest time between two SYNs.
	endedFor = maxPatience
)

// ended remembers the clients that were counted as turned away: where the network loses
// packets, one of which nothing was heard for long may still send its SYN again, and is
// no other client.
type ended struct {
	first map[uint64]time.Duration // by name: its first SYN
	queue []endedAttempt           // the oldest first
}

type endedAttempt struct {
	name uint64
	at   time.Duration
}

// add remembers one that is not remembered yet.
func (e *ended) add(at time.Duration, name uint64, first time.Duration) {
	if e.first == nil {
		e.first = make(map[uint64]time.Duration)
	}
	if len(e.queue) == maxEnded {
		e.drop()
	}
	e.first[name] = first
	e.queue = append(e.queue, endedAttempt{name, at})
}

// firstSYN is when the first SYN of one came that is remembered.
func (e *ended) firstSYN(name uint64) (at time.Duration, ok bool) {
	at, ok = e.first[name]
	return at, ok
}

// advance forgets those of which nothing can come any more.
func (e *ended) advance(at time.Duration) {
	for len(e.queue) > 0 && at-e.queue[0].at >= endedFor {
		e.drop()
	}
	if len(e.queue) == 0 {
		e.first, e.queue = nil, nil
	}
}

func (e *ended) drop() {
	delete(e.first, e.queue[0].name)
	e.queue = e.queue[1:]
}
