package render

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

// track is the past of one place.
type track struct {
	moments []moment       // the oldest first
	totals  backlog.Totals // at the latest look
	worst   backlog.Listener
	worstAt time.Time
}

// moment is the most that was seen of each stage within one interval; unknown
// is what was not.
type moment struct {
	at                                   int // number of the interval
	queue, connections, waiting, threads int
	dropped                              int // packets, in this interval
}

func (t *track) look(l *backlog.Listener, at time.Time, interval, spans int) {
	m := momentOf(l)
	for m.at = interval - spans + 1; m.at < interval && len(t.moments) > 0; m.at++ {
		t.moments = append(t.moments, m)
	}
	m.at = interval
	t.add(m, &l.Totals)
	if t.worstAt.IsZero() || worseThan(l, &t.worst) {
		t.worst, t.worstAt = *l, at // a copy: not the whole snapshot is kept
	}
}

// end takes what was lost between the latest look at a listener and its end.
func (t *track) end(totals *backlog.Totals, interval int) {
	if droppedSince(totals) <= droppedSince(&t.totals) {
		t.totals = *totals
		return
	}
	m := momentOf(&backlog.Listener{})
	m.at = interval
	t.add(m, totals)
}

// add ends the track with a moment, in which the totals came to what they are.
func (t *track) add(m moment, totals *backlog.Totals) {
	before, total := droppedSince(&t.totals), droppedSince(totals)
	m.dropped = int(total - min(before, total))
	t.totals = *totals
	if n := len(t.moments); n > 0 && t.moments[n-1].at == m.at {
		t.moments[n-1].merge(m)
	} else {
		t.moments = append(t.moments, m)
	}
	if extra := len(t.moments) - depth; extra > 0 {
		t.moments = slices.Delete(t.moments, 0, extra)
	}
}

// worseThan compares how two looks at a listener stand.
func worseThan(a, b *backlog.Listener) bool {
	if a.Verdict.Status != b.Verdict.Status {
		return a.Verdict.Status > b.Verdict.Status
	}
	return lost(a) > lost(b)
}

// droppedSince is an address's running total since tcpdiag started.
func droppedSince(t *backlog.Totals) (sum uint64) {
	for _, n := range t.Dropped {
		sum += n
	}
	return sum
}

func momentOf(l *backlog.Listener) moment {
	m := moment{queue: unknown, connections: unknown, waiting: unknown, threads: unknown}
	if l.AcceptQueue != nil {
		m.queue = l.AcceptQueue.Recent
	}
	if c := l.Connections; c != nil {
		m.connections, m.waiting = c.Held(), c.Phases[backlog.Waiting]
		if busy, _ := busyThreads(l); busy != nil {
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
