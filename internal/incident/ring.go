package incident

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

const (
	// Span is how many seconds a ring holds: 15 minutes.
	Span = 900
	// maxClosed is how many rings of listeners that closed are kept, 32 KB each at most. Whatever is in a snapshot has
	// one: these are bounded by --max-listeners and the expected ports.
	maxClosed = 50
	// forget is after how many seconds without a listener its ring is dropped.
	forget = Span
)

// Key is a listener's address, or an expected port on which nothing listens.
type Key struct {
	ID   model.ListenerID
	Port uint16
}

// KeyOf is the key of a listener.
func KeyOf(l *model.Listener) Key { return Key{l.ID, l.Port} }

// History holds a ring for each listener, fed by published snapshots.
type History struct {
	mu      sync.Mutex
	rings   map[Key]*ring
	refused map[Key]uint64 // of expected ports, as of the newest snapshot
	last    int64          // Unix nanoseconds of that
}

type ring struct {
	owner   string
	seen    int64    // Unix nanoseconds of the latest snapshot that had it
	points  []packed // the oldest at next, once full
	next    int
	samples minuteOf
	totals  *model.Totals // of the latest snapshot
}

// portKey is the key of a port, whoever listens there.
func portKey(netns uint64, port uint16) Key {
	return Key{ID: model.ListenerID{NetNS: netns}, Port: port}
}

// NewHistory has seen nothing.
func NewHistory() *History { return &History{rings: make(map[Key]*ring)} }

// Observe adds a snapshot. One that is not newer than the last adds nothing,
// so that neither asking twice nor a clock set back spoils a chart.
func (h *History) Observe(s *model.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s == nil || s.Time.UnixNano() == h.last {
		return
	}
	if s.Time.UnixNano() < h.last {
		clear(h.rings) // the clock was set back: what was is later than what comes
	}
	h.last = s.Time.UnixNano()
	for i := range s.Listeners {
		h.observe(s, &s.Listeners[i])
	}
	h.refused = make(map[Key]uint64, len(s.Targets))
	for _, t := range s.Targets {
		if t.Refused != nil {
			h.refused[portKey(t.NetNS, t.Port)] = *t.Refused
		}
	}
	h.forget(s.Time.Unix())
}

// forget drops what has been closed for long, and of what closed lately the oldest of whoever has most.
func (h *History) forget(now int64) {
	var closed []Key
	for key, r := range h.rings {
		switch at := int64(r.newest().at); {
		case now-at > forget:
			delete(h.rings, key)
		case r.seen != h.last:
			closed = append(closed, key)
		}
	}
	if len(closed) <= maxClosed {
		return
	}
	slices.SortFunc(closed, func(a, b Key) int {
		return cmp.Or(cmp.Compare(h.rings[a].seen, h.rings[b].seen), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	for _, i := range shares.Surplus(len(closed), maxClosed, func(i int) string { return h.rings[closed[i]].owner }) {
		delete(h.rings, closed[i])
	}
}

func (h *History) observe(s *model.Snapshot, l *model.Listener) {
	r := h.rings[KeyOf(l)]
	if r == nil {
		r = new(ring)
		h.rings[KeyOf(l)] = r
	}
	r.owner, r.seen = shares.OwnerOf(l), h.last
	p := recording.NewPoint(s.Time, l, r.totals)
	if now := s.RefusedAt(l); now != nil {
		if before, known := h.refused[portKey(l.ID.NetNS, l.Port)]; known {
			p.Clients = p.Clients.WithRefused(*now - min(before, *now))
		}
	}
	r.add(p)
	if l.AcceptQueue != nil {
		r.samples.add(l.AcceptQueue.Samples)
	}
	r.totals = &model.Totals{Dropped: l.Totals.Dropped, Clients: l.Totals.Clients}
}

func (r *ring) newest() *packed { return &r.points[(r.next+len(r.points)-1)%len(r.points)] }

func (r *ring) add(p recording.Point) {
	switch s := packPoint(p); {
	case len(r.points) > 0 && r.newest().at == s.at:
		*r.newest() = packPoint(r.newest().unpack(causes()).Merge(p))
	case len(r.points) < Span:
		r.points = append(r.points, s)
	default:
		r.points[r.next] = s
		r.next = (r.next + 1) % Span
	}
}

// Points are a listener's seconds, the oldest first; none of one that is not known.
func (h *History) Points(key Key) []recording.Point {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[key]
	if r == nil {
		return nil
	}
	out, known := make([]recording.Point, 0, len(r.points)), causes()
	for i := range r.points {
		out = append(out, r.points[(r.next+i)%len(r.points)].unpack(known))
	}
	return out
}

// Samples are the lengths of a listener's accept queue in the last minute, those
// after a moment in Unix milliseconds.
func (h *History) Samples(key Key, after int64) []recording.Samples {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rings[key]; r != nil {
		return r.samples.after(after)
	}
	return nil
}

// AddressOf names a listener for people: an expected port on which nothing
// listens has no address.
func AddressOf(l *model.Listener) string {
	if !l.Listening() {
		return "port " + strconv.Itoa(int(l.Port))
	}
	return l.ID.String()
}

// Before are the points of a listener, and before them, where nothing listens on its port,
// those of who did last.
func (h *History) Before(l *model.Listener) []recording.Point {
	latest := h.Points(KeyOf(l))
	if l.Listening() {
		return latest
	}
	var before []recording.Point
	for _, key := range h.listened(l) {
		if points := h.Points(key); len(before) == 0 || len(points) > 0 && points[len(points)-1].At > before[len(before)-1].At {
			before = points
		}
	}
	for len(latest) > 0 && len(before) > 0 && latest[0].At <= before[len(before)-1].At {
		latest = latest[1:]
	}
	return append(slices.Clone(before), latest...)
}

// listened are the keys of those who listened on a port.
func (h *History) listened(l *model.Listener) (out []Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range h.rings {
		if key.Port == l.Port && key.ID.NetNS == l.ID.NetNS && key.ID.Address.IsValid() {
			out = append(out, key)
		}
	}
	return out
}
