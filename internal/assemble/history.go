package assemble

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// history is what was seen so far at a listening address: of the present listener only,
// and of its process.
type history struct {
	identity
	moments    moments
	hysteresis diagnosis.Hysteresis
	queue      firstInQueue
	previous   moment // the last at the listener before it, until its drops are settled
	absent     bool   // nobody listened there at the latest snapshot
	hadClients bool   // connections were seen while its address was there
}

// identity distinguishes the listener at an address from one that was
// there before it: a restart gives it other sockets, or (under socket
// activation) the same ones in another process.
type identity struct {
	inodes []uint32            // of its sockets, several under SO_REUSEPORT
	owner  hostproc.ProcessKey // zero while it is not known
	since  time.Time           // of the first watchlist that has it
}

// setListener takes from the watchlist who listens at the address. If that is another listener or
// process, what was seen of the one before is forgotten.
func (h *history) setListener(e *facts.Watched, now time.Time) {
	key, known := e.Process()
	inodes := e.Inodes()
	if !h.same(inodes, key, known) {
		h.previous = h.moments.last
		h.forget()
		h.identity = identity{since: now}
	}
	if known {
		h.owner = key
	}
	h.inodes = inodes
}

func (i *identity) same(inodes []uint32, owner hostproc.ProcessKey, known bool) bool {
	if known && i.owner != (hostproc.ProcessKey{}) && i.owner != owner {
		return false
	}
	return slices.ContainsFunc(inodes, func(inode uint32) bool { return slices.Contains(i.inodes, inode) })
}

// forget drops what was seen of a listener.
func (h *history) forget() {
	h.moments, h.hysteresis, h.queue, h.hadClients = moments{}, diagnosis.Hysteresis{}, firstInQueue{}, false
}

// firstInQueue tells since when nobody has been taken out of the accept queue.
type firstInQueue struct {
	found *connections.Found // the latest reading that was asked
	since time.Time          // of the first reading with the same first in the queue
	long  *time.Duration     // see read
}

// read takes another reading of the queue, of several sockets under SO_REUSEPORT. It returns for how long
// nobody has been taken out, nil where that is not known: each reading is compared with the one before.
func (s *firstInQueue) read(found *connections.Found, at time.Time, several bool) *time.Duration {
	if s.found == found {
		return s.long
	}
	earlier := s.found
	s.found, s.long = found, nil
	if earlier == nil {
		s.since = at
		return nil
	}
	stands, known := found.Stands(earlier, several)
	if !stands {
		s.since = at
	}
	if known {
		s.long = new(at.Sub(s.since))
	}
	return s.long
}

// steady is the least time that a forecast is drawn through.
const steady = 5 * time.Second

// judged is what a verdict depends on besides the listener.
type judged struct {
	now      time.Time
	interval time.Duration
	every    time.Duration // between two snapshots
	first    bool          // another snapshot will follow this one
	sysctl   map[string]int
	delta    model.Counters
	closed   *model.Closed
	latched  int // how many connections were held when the latch was just seen to be closed, 0: it was not
	t        reading.Thresholds
}

// judge gives a listener its headroom and its verdict, and remembers it for the
// next one. before are the readings that its own are compared with, nil for
// those of the listener as it was.
func (h *history) judge(l *model.Listener, before *earlier, j *judged) {
	h.hysteresis.Hold, h.hysteresis.Settle = j.t.Hold, j.t.Settle
	e := symptoms.Input{Now: l, Interval: j.interval, Sysctl: j.sysctl, Delta: j.delta, Closed: j.closed}
	past, trend := h.moments.past(j.now, j.every), h.moments.trend()
	if past.Listener != nil {
		e.Before, e.Elapsed = before.put(past.Listener), j.now.Sub(past.at)
	}
	e.First = e.Before == nil && j.first
	if j.now.Sub(trend.at) < steady {
		trend.Listener = nil // a trend through two close snapshots is noise
	}
	l.Connector, e.Before = reading.Infer(e.Before, l, j.latched)
	l.Limits = reading.Headroom(l, trend.Listener, j.now.Sub(trend.at), j.sysctl, j.t)
	if e.Before != nil {
		e.Shown = new(h.hysteresis.Shown())
	}
	l.Verdict, l.Basis = diagnosis.Judge(e, j.t), e.Basis()
	if h.known(l, !j.first) {
		h.hysteresis.Reset()
		if e.Shown != nil {
			e.Shown = new(h.hysteresis.Shown())
			l.Verdict = diagnosis.Judge(e, j.t)
		}
	}
	if e.Before != nil { // what one snapshot says must not hold back what two say
		l.Basis.Shown = new(h.hysteresis.Shown())
		l.Verdict = h.hysteresis.Apply(j.now, l.Verdict)
	}
	h.moments.push(newMoment(j.now, l), j.every)
}

// known reports whether another cause of the same status is no flicker: the limit of
// connections has been inferred, or what the workers do been read for the first time, since
// the verdict that is shown; the process is stopped; or no snapshot follows that could
// show it, and the limit is known as before.
func (h *history) known(l *model.Listener, last bool) bool {
	was := h.moments.last.Listener
	newly := inferred(l) && !inferred(was) || workersRead(l) && !workersRead(was)
	stopped := l.Verdict.Cause == model.CauseJVMPause && reading.Stopped(l)
	last = last && (inferred(l) || !inferred(was))
	return (newly || stopped || last) && l.Verdict.Status == h.hysteresis.Shown().Verdict.Status
}

func workersRead(l *model.Listener) bool {
	return l != nil && l.Process != nil && l.Process.Downstream != nil && l.Process.Downstream.Workers != nil
}

func inferred(l *model.Listener) bool {
	return l != nil && l.Connector != nil && l.Connector.MaxConnections != nil && l.Connector.MaxConnections.Kind == model.SourceInferred
}

// earlier are the readings of a listener's connections and process before the
// present ones, each from its own clock.
type earlier struct {
	connections *model.Connections
	process     *model.Process
	full        time.Time // since when the queue is full, zero while it is not
}

// since is when the queue became full, zero while it is not.
func (e *earlier) since() time.Time {
	if e == nil {
		return time.Time{}
	}
	return e.full
}

// put is a copy of a listener with these readings in it. Where there is none, the
// listener keeps its own.
func (e *earlier) put(l *model.Listener) *model.Listener {
	if e == nil {
		return l
	}
	out := *l
	if e.connections != nil {
		out.Connections = e.connections
	}
	if e.process != nil {
		p := *e.process
		if l.Process != nil { // which has a clock of its own
			p.Busiest, p.Downstream = l.Process.Busiest, l.Process.Downstream
		}
		out.Process = &p
	}
	return &out
}

// closing is a listener that closed in the window with clients queued.
type closing struct {
	id     model.ListenerID
	absent bool
	losses.Departure
}

// closings are those of a namespace's accounts.
func closings(accounts map[model.ListenerID]*losses.Report, now time.Time, interval time.Duration) (out []closing) {
	for id, a := range accounts {
		if d := a.Closed; d.Queued > 0 && now.Sub(d.At) < max(interval, time.Second) {
			out = append(out, closing{id, a.Absent, d})
		}
	}
	return out
}

// closedBefore is the latest of them that concerns who is judged: its own, and
// that of another address of the port which it took the place of, as after a
// restart that binds elsewhere. One that was there before has not taken its place. h is
// nil where nothing listens on the port.
func closedBefore(list []closing, port uint16, id model.ListenerID, h *history, now time.Time) *model.Closed {
	var latest *closing
	for i := range list {
		d := &list[i]
		concerns := h == nil || d.id == id || d.absent && !h.since.Before(d.At)
		if d.id.Address.Port() == port && concerns && (latest == nil || d.At.After(latest.At)) {
			latest = d
		}
	}
	if latest == nil {
		return nil
	}
	return &model.Closed{Queued: latest.Queued, Ago: max(0, now.Sub(latest.At)), Part: latest.Part}
}

// moment is a listener as one scan saw it, a copy: the one in a snapshot would keep all others of that snapshot with it.
type moment struct {
	at time.Time
	*model.Listener
}

func newMoment(at time.Time, l *model.Listener) moment {
	seen := *l
	seen.Basis = nil
	return moment{at, &seen}
}

// moments are the earlier scans of a listener that judging needs: the previous one, one
// about a scan interval old, and one far enough back for a trend.
type moments struct {
	last, before moment
	anchors      [2]moment
}

// anchorAge is how far apart the scans are that a trend is drawn through.
const anchorAge = 15 * time.Second

// push adds a scan. Scans that were brought forward because packets dropped
// replace last but not before, so that two scans stay apart by about apart.
func (l *moments) push(now moment, apart time.Duration) {
	if l.before.Listener == nil || now.at.Sub(l.last.at) >= apart/2 || l.last.at.Sub(l.before.at) >= apart {
		l.before = l.last
	}
	l.last = now
	if now.at.Sub(l.anchors[1].at) >= anchorAge {
		l.anchors[0], l.anchors[1] = l.anchors[1], now
	}
}

// past is the scan to compare with: the last one, unless that one was brought
// forward and is too close.
func (l *moments) past(now time.Time, apart time.Duration) moment {
	if l.before.Listener != nil && now.Sub(l.last.at) < apart/2 {
		return l.before
	}
	return l.last
}

// trend is the oldest scan that is kept, for the forecast.
func (l *moments) trend() moment {
	if l.anchors[0].Listener != nil {
		return l.anchors[0]
	}
	return l.anchors[1]
}
