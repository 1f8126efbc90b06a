package plan

import (
	"math"
	"time"
)

// planTimer is a kind of timer. At equal times the lower one goes first: a
// thread is free before the next client comes, and all SYNs of a moment meet
// the accept queue before any of their final ACKs does, and before accept() is called.
type planTimer int

const (
	timerFinish planTimer = iota // a thread is done with a request
	timerWorked                  // a thread's own work on it is done: the backend is next
	timerClosed                  // its connection is closed
	timerConnect
	timerResponse
	timerArrive
	timerSYN      = timerArrive + 1                            // the k-th repetition of a SYN, or the kernel gives up
	timerSynAck   = timerSYN + planTimer(maxSynRetries) + 1    // the k-th repetition of a SYN+ACK
	timerData     = timerSynAck + planTimer(synAckRetries) + 1 // the k-th repetition of the request's bytes
	timerFinalACK = timerData + planTimer(len(dataRetries{}))  // an ACK that completes a handshake
	timerAccept   = timerFinalACK + 1                          // accept() after a batch of packets
	numPlanTimers = timerAccept + 1
	never         = time.Duration(math.MaxInt64)
)

// planTimers holds every pending event. Each kind of timer runs for a constant
// time, so each kind fires in the order it was set: a queue a kind does, where
// a heap over all would cost ten times as much.
type planTimers struct {
	next   [numPlanTimers]time.Duration // head of each queue, or never
	queues [numPlanTimers]planQueue[planEvent]
}

type planEvent struct {
	at     time.Duration
	client int32
}

func newPlanTimers() *planTimers {
	t := &planTimers{}
	for i := range t.next {
		t.next[i] = never
	}
	return t
}

// set adds an event; at must not lie before the last one of the same kind.
func (t *planTimers) set(kind planTimer, at time.Duration, client int32) {
	if t.queues[kind].len() == 0 {
		t.next[kind] = at
	}
	t.queues[kind].push(planEvent{at, client})
}

// pop takes the next event; ok is false when there is none.
func (t *planTimers) pop() (kind planTimer, e planEvent, ok bool) {
	at := never
	for k, next := range t.next {
		if next < at {
			at, kind = next, planTimer(k)
		}
	}
	if at == never {
		return 0, planEvent{}, false
	}
	q := &t.queues[kind]
	e = q.pop()
	t.next[kind] = never
	if q.len() > 0 {
		t.next[kind] = q.peek().at
	}
	return kind, e, true
}

// planQueue is a first-in-first-out queue that reuses its room.
type planQueue[T any] struct {
	items []T
	head  int
}

func (q *planQueue[T]) len() int { return len(q.items) - q.head }
func (q *planQueue[T]) peek() T  { return q.items[q.head] }

func (q *planQueue[T]) push(v T) {
	if q.head > 64 && q.head > len(q.items)/2 {
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	q.items = append(q.items, v)
}

func (q *planQueue[T]) pop() T {
	v := q.items[q.head]
	q.head++
	return v
}
