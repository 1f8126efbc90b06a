package watch

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// track is the past of one listener.
type track struct {
	moments []moment     // the oldest first
	totals  model.Totals // at the latest snapshot
	drops   dropCounts
	dropped uint64 // packets since the start
	refused uint64 // clients since the start, at a port that is this listener's alone
	worst   model.Listener
	worstAt time.Time
}

// moment is the most that was seen of each stage within one interval; unknown
// is what was not.
type moment struct {
	at                                   int // number of the interval
	queue, connections, waiting, threads int
	dropped                              int // packets, in this interval
}

func (t *track) observe(snap *model.Snapshot, l *model.Listener, interval, spans int) {
	m := momentOf(l)
	for m.at = interval - spans + 1; m.at < interval && len(t.moments) > 0; m.at++ {
		t.moments = append(t.moments, m)
	}
	m.at = interval
	t.add(m, t.drops.since(snap, l.ID, &l.Totals, l.Losses))
	t.totals = l.Totals
	if t.worstAt.IsZero() || worseThan(l, &t.worst) {
		t.worst, t.worstAt = *l, snap.Time // a copy: not the whole snapshot is kept
	}
}

// end takes what was lost between the latest snapshot of a listener and its end.
func (t *track) end(snap *model.Snapshot, g *model.RetainedTotals, interval int) {
	dropped := t.drops.since(snap, g.ID, &g.Totals, nil)
	t.totals = g.Totals
	if dropped == 0 {
		return
	}
	m := momentOf(&model.Listener{})
	m.at = interval
	t.add(m, dropped)
}

// add ends the track with a moment in which that many packets were dropped.
func (t *track) add(m moment, dropped uint64) {
	m.dropped = int(dropped)
	t.dropped += dropped
	if n := len(t.moments); n > 0 && t.moments[n-1].at == m.at {
		t.moments[n-1].merge(m)
	} else {
		t.moments = append(t.moments, m)
	}
	if extra := len(t.moments) - depth; extra > 0 {
		t.moments = slices.Delete(t.moments, 0, extra)
	}
}

// worseThan compares the states of a listener in two snapshots.
func worseThan(a, b *model.Listener) bool {
	if a.Verdict.Status != b.Verdict.Status {
		return a.Verdict.Status > b.Verdict.Status
	}
	return render.DroppedPackets(a) > render.DroppedPackets(b)
}

func momentOf(l *model.Listener) moment {
	m := moment{queue: term.Unknown, connections: term.Unknown, waiting: term.Unknown, threads: term.Unknown}
	if l.AcceptQueue != nil {
		m.queue = l.AcceptQueue.Recent
	}
	if c := l.Connections; c != nil {
		m.connections, m.waiting = c.SlotsInUse(), c.Phases[model.Waiting]
		if busy, _ := render.BusyThreads(l); busy != nil {
			m.threads = *busy
		}
	}
	return m
}

func (m *moment) merge(later moment) {
	m.queue = max(m.queue, later.queue)
	m.connections = max(m.connections, later.connections)
	m.waiting = max(m.waiting, later.waiting)
	m.threads = max(m.threads, later.threads)
	m.dropped += later.dropped
}

// dropCounts is how many packets a listener had dropped at the latest sample, by its own
// count and by its namespace's of those that no socket accounts for.
type dropCounts struct{ attributed, unattributed uint64 }

// since is how many have come since the snapshot before. A counter that starts again
// has dropped nothing. What no socket accounts for counts as long as the losses
// say that it can only be this listener's.
func (t *dropCounts) since(snap *model.Snapshot, id model.ListenerID, totals *model.Totals, lost *model.Losses) uint64 {
	before := *t
	*t = dropCounts{droppedSince(totals), max(before.unattributed, unattributed(snap, id.NetNS))}
	n := t.attributed - min(before.attributed, t.attributed)
	if lost != nil {
		n += min(t.unattributed-before.unattributed, lost.Unattributed)
	}
	return n
}

// droppedSince is an address's running total since tcpdiag started.
func droppedSince(t *model.Totals) uint64 {
	sum := t.Pending
	for _, n := range t.Dropped {
		sum += n
	}
	return sum
}

// unattributed is a namespace's running total since tcpdiag started; 0 when it
// could not be read.
func unattributed(snap *model.Snapshot, netns uint64) uint64 {
	for i := range snap.NetNS {
		if snap.NetNS[i].ID == netns {
			return snap.NetNS[i].Unattributed
		}
	}
	return 0
}
