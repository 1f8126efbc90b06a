package handshake

import "time"

const (
	// maxEnded bounds the clients that are remembered, at some 80 bytes each.
	maxEnded = 10_000
	// endedFor is the longest time until another SYN comes, and that one's attempt ends.
	endedFor = 2 * maxPatience
)

// ended remembers the clients that were counted as turned away: where the network loses
// packets, one of which nothing was heard for long may still send its SYN again, and is
// no other client.
type ended struct {
	byName map[uint64]endedAttempt
	queue  []endedName // the oldest first; of a name that comes again, both
}

type endedAttempt struct{ first, at time.Duration }

type endedName struct {
	name uint64
	at   time.Duration
}

// add remembers one whose first SYN came then, and reports whether it is new.
func (e *ended) add(at time.Duration, name uint64, first time.Duration) bool {
	if e.byName == nil {
		e.byName = make(map[uint64]endedAttempt)
	}
	if len(e.queue) == maxEnded {
		e.drop()
	}
	_, again := e.byName[name]
	e.byName[name] = endedAttempt{first, at}
	e.queue = append(e.queue, endedName{name, at})
	return !again
}

// firstSYN is when the first SYN of one came that is remembered.
func (e *ended) firstSYN(name uint64) (time.Duration, bool) {
	a, ok := e.byName[name]
	return a.first, ok
}

// advance forgets those of which nothing can come any more.
func (e *ended) advance(at time.Duration) {
	for len(e.queue) > 0 && at-e.queue[0].at >= endedFor {
		e.drop()
	}
	if len(e.queue) == 0 {
		e.byName, e.queue = nil, nil
	}
}

func (e *ended) drop() {
	if oldest := e.queue[0]; e.byName[oldest.name].at == oldest.at {
		delete(e.byName, oldest.name)
	}
	e.queue = e.queue[1:]
}

// name tells an attempt from all others, as good as always: a client's sequence numbers
// follow a clock.
func (t *Tracker) name(k *key, isn uint32) uint64 {
	return t.table.hash(k) ^ uint64(isn)*0x9e3779b97f4a7c15
}
