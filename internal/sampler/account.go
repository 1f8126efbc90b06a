package sampler

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
)

// account is what is remembered of a listening address. It survives the
// listener's restart and is kept for a while after the listener vanished, so
// that its counters go on where they were.
type account struct {
	id       backlog.ListenerID
	ledger   ledger
	peaks    peaks
	fill     backlog.FillHistogram
	fullTime time.Duration
	lastSeen time.Time
	// dismissed: it listens and is not watched (any more), so that what its
	// socket drops from now on is nobody's.
	dismissed bool

	// pending are dropped packets whose cause waits for the next scan: the
	// stages must be seen on both sides of the drop.
	pending []diagnosis.Attributed
	// due are those that the scan's own reading of the namespace's counters
	// has, too. What drops while the scan goes on belongs to the next one:
	// or else a window's drops would be others than those of its counters.
	due []diagnosis.Attributed
	// closed is the number of connections that stood in the queue of a listener
	// that went away, kept for the verdict until the window has passed.
	closed   int
	closedAt time.Time

	looks      looks
	hysteresis diagnosis.Hysteresis
	gone       closedByClient
}

// hadQueue tells whether anybody stood in the accept queue at the last scan.
func (a *account) hadQueue() bool {
	return a.looks.last.Listener != nil && a.looks.last.AcceptQueue.Length > 0
}

// retention is how long the counters of a vanished listener are kept.
const retention = time.Hour

func newAccount(id backlog.ListenerID, window time.Duration) *account {
	return &account{id: id, peaks: newPeaks(window)}
}

// pend books dropped packets whose cause is not known yet.
func (a *account) pend(d diagnosis.Attributed) {
	for i := range a.pending {
		if p := &a.pending[i]; p.Packet == d.Packet && p.Estimated == d.Estimated && p.SynQueue == d.SynQueue {
			p.Packets += d.Packets
			return
		}
	}
	a.pending = append(a.pending, d)
}

// fallDue is called at a scan's checkpoint.
func (a *account) fallDue() {
	a.due = append(a.due, a.pending...)
	a.pending = a.pending[:0]
}

// settle gives the drops that are due their cause: that of the accept queue's drops
// is what the two looks around them show.
func (a *account) settle(queueCause func() backlog.Cause) {
	for _, d := range a.due {
		cause := backlog.CauseSynBacklog
		if !d.SynQueue {
			cause = queueCause()
		}
		a.ledger.drop(backlog.DropKey{Cause: cause, Packet: d.Packet}, d.Packets, d.Estimated)
	}
	a.due = a.due[:0]
}

func (a *account) totals() backlog.Totals {
	t := a.ledger.totals()
	t.FullSeconds = a.fullTime.Seconds()
	t.Fill = a.fill
	return t
}

// look is a listener as one scan saw it.
type look struct {
	at time.Time
	*backlog.Listener
}

// looks are the past of a listener that judging needs: the previous look, one
// about a scan interval old, and one far enough back for a trend.
type looks struct {
	last, before look
	anchors      [2]look
}

// anchorAge is how far apart the looks are that a trend is drawn through.
const anchorAge = 15 * time.Second

// push adds a look. Scans that were brought forward because packets dropped
// replace last but not before, so that two looks stay apart by about apart.
func (l *looks) push(now look, apart time.Duration) {
	if l.before.Listener == nil || now.at.Sub(l.last.at) >= apart/2 || l.last.at.Sub(l.before.at) >= apart {
		l.before = l.last
	}
	l.last = now
	if now.at.Sub(l.anchors[1].at) >= anchorAge {
		l.anchors[0], l.anchors[1] = l.anchors[1], now
	}
}

// past is the look to compare with: the last one, unless that one was brought
// forward and is too close.
func (l *looks) past(now time.Time, apart time.Duration) look {
	if l.before.Listener != nil && now.Sub(l.last.at) < apart/2 {
		return l.before
	}
	return l.last
}

// trend is the oldest look that is kept, for the forecast.
func (l *looks) trend() look {
	if l.anchors[0].Listener != nil {
		return l.anchors[0]
	}
	return l.anchors[1]
}
