package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// account is what is remembered of a listening address. It survives the
// listener's restart and is kept for a while after the listener vanished, so
// that its counters go on where they were.
type account struct {
	id       model.ListenerID
	ledger   ledger
	peaks    peaks
	fill     model.FillHistogram
	fullTime time.Duration
	lastSeen time.Time
	// dismissed: it listens and is not watched (any more), so that what its
	// socket drops from now on is nobody's.
	dismissed bool

	// pending are dropped packets whose cause waits for the next scan: the
	// stages must be seen on both sides of the drop.
	pending []pending
	// due are those that the scan's own reading of the namespace's counters
	// has, too. What drops while the scan goes on belongs to the next one:
	// or else a window's drops would be others than those of its counters.
	due    []pending
	closed departure

	// What holds of the present listener only, and of its process: see meet.
	identity
	looks      looks
	hysteresis diagnosis.Hysteresis
	absent     bool // it was not there at the last scan
	former     look // the last at the listener before it, until its drops are settled
	gone       closedByClient
}

// pending are dropped packets that have no cause yet.
type pending struct {
	losses.Attributed
	// former: their listener has closed since. How another one at the address
	// is says nothing of them.
	former bool
}

// hadQueue tells whether anybody stood in the accept queue at the last scan.
func (a *account) hadQueue() bool {
	return a.looks.last.Listener != nil && a.looks.last.AcceptQueue.Length > 0
}

// retention is how long the counters of a vanished listener are kept.
const retention = time.Hour

func newAccount(id model.ListenerID, window time.Duration) *account {
	return &account{id: id, peaks: newPeaks(window)}
}

// pend books dropped packets whose cause is not known yet.
func (a *account) pend(d losses.Attributed) {
	for i := range a.pending {
		if p := &a.pending[i]; !p.former && p.Packet == d.Packet && p.Estimated == d.Estimated && p.SynQueue == d.SynQueue {
			p.Packets += d.Packets
			return
		}
	}
	a.pending = append(a.pending, pending{Attributed: d})
}

// close is called when the listener is found to be gone.
func (a *account) close() {
	for i := range a.pending {
		a.pending[i].former = true
	}
}

// fallDue is called at a scan's checkpoint.
func (a *account) fallDue() {
	a.due = append(a.due, a.pending...)
	a.pending = a.pending[:0]
}

// settle gives the drops that are due their cause: that of the accept queue's drops
// is what the two looks around them show.
func (a *account) settle(queueCause func(former bool) model.Cause) {
	for _, d := range a.due {
		cause := model.CauseSynBacklog
		if !d.SynQueue {
			cause = queueCause(d.former)
		}
		a.ledger.drop(model.DropKey{Cause: cause, Packet: d.Packet}, d.Packets, d.Estimated)
	}
	a.due = a.due[:0]
	a.former = look{}
}

func (a *account) totals() model.Totals {
	t := a.ledger.totals()
	t.FullSeconds = a.fullTime.Seconds()
	t.Fill = a.fill
	return t
}
