package watch

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// identity is a listener, or the expected port on which nothing listens. It
// survives the listener's restart.
type identity struct {
	id   model.ListenerID
	port uint16
}

func identityOf(l *model.Listener) identity { return identity{l.ID, l.Port} }

func identityOfRetired(g *model.RetainedTotals) identity { return identity{g.ID, g.ID.Address.Port()} }

// portOf is a port, whoever listens there.
func portOf(netns uint64, port uint16) identity {
	return identity{id: model.ListenerID{NetNS: netns}, port: port}
}

// history is what was seen of every listener, interval by interval.
type history struct {
	pace    pace
	now     int         // number of the present interval
	began   []time.Time // the latest intervals, the present one last
	tracks  map[identity]*track
	refused map[identity]uint64 // of the ports, at the latest snapshot
}

// depth is how many intervals are kept: more than the widest screen shows.
const depth = term.MaxWidth

func newHistory(interval time.Duration) *history {
	return &history{pace: pace{interval: interval}, tracks: map[identity]*track{}}
}

// add adds what one snapshot saw. Several snapshots within an interval are one moment.
func (h *history) add(snap *model.Snapshot) {
	steps := h.pace.steps(snap.Time)
	h.begin(steps, snap.Time)
	// Where samples are expensive, the sampler takes them further apart than asked for:
	// what one of them shows then stands for the intervals before it, too.
	spans := max(1, min(steps, int((snap.Self.ScanInterval+h.pace.interval/2)/h.pace.interval)))
	for i := range snap.Listeners {
		l := &snap.Listeners[i]
		t := h.tracks[identityOf(l)]
		if t == nil {
			t = &track{}
			h.tracks[identityOf(l)] = t
		}
		t.observe(snap, l, h.now, spans)
		if now := snap.RefusedAt(l); now != nil {
			before := h.refused[portOf(l.ID.NetNS, l.Port)]
			t.refused += *now - min(before, *now)
		}
	}
	h.refused = make(map[identity]uint64, len(snap.Targets))
	for _, t := range snap.Targets {
		if t.Refused != nil {
			h.refused[portOf(t.NetNS, t.Port)] = *t.Refused
		}
	}
	for i := range snap.Retired {
		if t := h.tracks[identityOfRetired(&snap.Retired[i])]; t != nil {
			t.end(snap, &snap.Retired[i], h.now)
		}
	}
	h.forget()
}

// begin moves to the interval that begins at this time, and is this many after
// the present one.
func (h *history) begin(steps int, at time.Time) {
	h.now += steps
	for left := min(steps, depth) - 1; left >= 0; left-- {
		h.began = append(h.began, at.Add(-time.Duration(left)*h.pace.interval))
	}
	h.began = h.began[max(0, len(h.began)-depth):]
}

// span is the time that this many of the latest intervals took, those before the
// first as long as asked for.
func (h *history) span(columns int) time.Duration {
	n := min(len(h.began), columns)
	if n == 0 {
		return time.Duration(columns) * h.pace.interval
	}
	return h.began[len(h.began)-1].Sub(h.began[len(h.began)-n]) + time.Duration(columns-n+1)*h.pace.interval
}

// forget lets those go that are off the screen and of which there is nothing to
// show: with --all, listeners may come and go for days.
func (h *history) forget() {
	for p, t := range h.tracks {
		if h.now-t.moments[len(t.moments)-1].at > depth && t.worst.Verdict.Status == model.StatusOK {
			delete(h.tracks, p)
		}
	}
}

// of gives a figure's values in the latest intervals, the newest last.
func (h *history) of(p identity, columns int, figure func(*moment) int) []int {
	values := slices.Repeat([]int{term.Unknown}, columns)
	t := h.tracks[p]
	if t == nil {
		return values
	}
	for i := range t.moments {
		if column := columns - 1 - (h.now - t.moments[i].at); column >= 0 {
			values[column] = figure(&t.moments[i])
		}
	}
	return values
}

// clone is the history as it stands, which later snapshots do not change.
func (h *history) clone() *history {
	out := *h
	out.began = slices.Clone(h.began)
	out.tracks = make(map[identity]*track, len(h.tracks))
	for p, t := range h.tracks {
		copied := *t
		copied.moments = slices.Clone(t.moments)
		out.tracks[p] = &copied
	}
	return &out
}

// pace parts time into intervals. A snapshot that comes a little late begins no
// interval of its own between two others, and none is skipped.
type pace struct {
	interval time.Duration
	start    time.Time // of the present interval
}

// early is how much of an interval a snapshot may come before its time.
const early = 10 // per cent

// steps says how many intervals have passed since the present one began; it
// starts again with time t then. The first snapshot is in an interval of its own.
func (p *pace) steps(t time.Time) int {
	if p.start.IsZero() {
		p.start = t
		return 1
	}
	n := int((t.Sub(p.start) + p.interval*early/100) / p.interval)
	if n <= 0 {
		return 0
	}
	p.start = t
	return n
}
