package losses

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Account is what is counted for a listening address. It survives the
// listener's restart and is kept for a while after the listener closed, so
// that its counters continue where they were.
type Account struct {
	ID       model.ListenerID
	User     uint32    // who made its socket
	LastSeen time.Time // listening; zero before the first checkpoint with it
	Absent   bool      // it was not there in the latest watchlist

	// unwatched: it listens and is not watched, or no longer, so that what its
	// socket drops from now on is nobody's.
	unwatched bool

	ledger   ledger
	peaks    peaks
	trace    trace
	fill     model.FillHistogram
	fullTime time.Duration
	closed   Departure
	spells   spells
	// blamed is when its own socket's counter last moved, or its own queue was
	// last seen full: without either a drop is not its.
	blamed time.Time
}

// Departure is a listener that closed with clients in its queue.
type Departure struct {
	Queued int
	At     time.Time
	Part   bool // only some sockets of an SO_REUSEPORT group
}

// NewAccount opens an account whose peaks span the window.
func NewAccount(id model.ListenerID, window time.Duration) *Account {
	return &Account{ID: id, peaks: newPeaks(window)}
}

// Observe takes a sample. It does not allocate.
func (a *Account) Observe(q Queue) {
	a.spells.sampled(q)
	a.fullTime += q.FullFor
	a.peaks.observe(q.At, q.Length)
	a.trace.observe(q.At, q.Length)
	a.fill.Observe(q.Ratio())
	if q.Full() {
		a.blamed = q.At
	}
}

// drop books packets: under the cause of a trouble that is over where they can only be
// the retransmissions of clients that it turned away, else until their cause is known.
func (a *Account) drop(d Attributed, at time.Time) {
	a.spells.count(at, d.Packets)
	repeated := !d.SynQueue && a.spells.repeated(at)
	if repeated && a.spells.late(at, d.Packets) {
		c, e := a.spells.cause(&a.ledger)
		a.ledger.repeated(model.DropKey{Cause: c, Packet: d.Packet}, drops{packets: d.Packets, evidence: e})
		return
	}
	a.spells.lost(at, &a.ledger)
	a.ledger.pend(d, at, repeated)
}

// Moved is called when the drop counter of its own socket has moved.
func (a *Account) Moved(at time.Time) { a.blamed = at }

// Close is called when all its sockets are found to be closed.
func (a *Account) Close() {
	for i := range a.ledger.waiting {
		a.ledger.waiting[i].previous = true
	}
}

// ResetQueue counts the clients that were reset because their listener closed.
func (a *Account) ResetQueue(d Departure) {
	if d.Queued > 0 {
		a.spells.lost(d.At, &a.ledger)
		a.closed = d
	}
	a.ledger.resetQueue(uint64(d.Queued))
}

// Closed is the latest time that it closed with clients queued.
func (a *Account) Closed() Departure { return a.closed }

// Abandon counts requests whose clients did not wait for the answer: they had closed before the
// checkpoint that followed the given one.
func (a *Account) Abandon(n uint64, after int) { a.ledger.abandon(n, after) }

// Checkpoint is the number of the latest one.
func (a *Account) Checkpoint() int { return a.ledger.number }

// Waits reports whether it has drops without a cause.
func (a *Account) Waits() bool { return len(a.ledger.waiting) > 0 }

// Oldest is when the first of those was dropped.
func (a *Account) Oldest() time.Time { return a.ledger.waiting[0].since }

// Settle gives its drops their cause, see ledger.settle. Where that says no more than that
// the queue was full, of packets that may be repeated, it is that of the trouble.
func (a *Account) Settle(cause func(Drop) (model.Cause, model.Evidence, bool)) {
	a.ledger.settle(func(d Drop) (model.Cause, model.Evidence, bool) {
		c, e, known := cause(d)
		if known && d.repeated && !c.Telling() && len(a.spells.list) > 0 {
			if then, evidence := a.spells.cause(&a.ledger); then.Telling() {
				return then, evidence, true
			}
		}
		return c, e, known
	})
}

// Totals are its running totals.
func (a *Account) Totals() model.Totals {
	t := a.ledger.totals()
	t.FullSeconds = a.fullTime.Seconds()
	t.Fill = a.fill
	return t
}

// TakeRecent returns the highest sample since it was last called.
func (a *Account) TakeRecent() int { return a.peaks.takeRecent() }

// TakeSamples returns how the queue went since it was last called, and some time
// before; nil where it was not sampled.
func (a *Account) TakeSamples() *model.QueueSamples { return a.trace.take() }

// Peak is the highest sample of the window that ends now.
func (a *Account) Peak(now time.Time) (length int, when time.Time, ok bool) {
	return a.peaks.highest(now)
}

// Unwatched reports whether it is not watched though it may listen.
func (a *Account) Unwatched() bool { return a.unwatched }
