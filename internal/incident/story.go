package incident

import (
	"errors"
	"io"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Story is what a recording says, for whoever has seen nothing else.
type Story struct {
	Header  Header
	Summary Summary
	Points  []Point // by second, from a minute before
	Events  []Event
	Worst   Frame // at the worst moment
	Last    Frame
	Counted Counted // in the incident
	Peak    int     // of the accept queue
	Inside  int     // most clients at once; -1: not known
	Torn    bool    // the last record was not written to its end
	Damaged int     // records that could not be read
}

// Event is a change of status, of cause or of the process.
type Event struct {
	At     time.Time
	Status model.Status
	Cause  model.Cause
	Text   string
	PID    int // 0 where it is not known
}

// maxEvents bounds the events of a listener that flaps.
const maxEvents = 200

// Tell reads a recording.
func Tell(in io.Reader) (*Story, error) {
	r, err := NewReader(in)
	if err != nil {
		return nil, err
	}
	s := &Story{Header: r.Header, Summary: r.Header.summary(), Inside: -1}
	var first Frame
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if s.Summary.Frames == 0 {
			first, s.Worst = *f, *f
		}
		s.see(f)
	}
	s.Torn, s.Damaged = r.Torn, r.Damaged
	if len(r.Points) > 0 {
		s.Summary.seconds(r.Until, r.Points)
		s.points(r.Points)
	}
	if r.End != nil {
		s.Summary.Ended, s.Summary.Reason = r.End.At, r.End.Reason
	}
	if s.Summary.Frames == 0 {
		return nil, errEmpty
	}
	s.Counted = since(&first, &s.Last)
	return s, nil
}

var errEmpty = errors.New("incident: the recording holds no frame")

func (s *Story) see(f *Frame) {
	s.Summary.See(f)
	if worse(&f.Listener, &s.Worst.Listener) {
		s.Worst = *f
	}
	s.Last = *f
	s.points(f.Points)
	if q := f.Listener.AcceptQueue; q != nil {
		s.Peak = max(s.Peak, q.Length)
	}
	s.event(f)
}

func (s *Story) points(points []Point) {
	for _, p := range points {
		s.Peak, s.Inside = max(s.Peak, int(p.Peak)), max(s.Inside, int(p.Inside))
		if len(s.Points) < 2*maxFrames {
			s.Points = append(s.Points, p)
		}
	}
}

// worse compares two moments: by status, then by what was lost.
func worse(a, b *model.Listener) bool {
	if a.Verdict.Status != b.Verdict.Status {
		return a.Verdict.Status > b.Verdict.Status
	}
	return droppedIn(a) > droppedIn(b)
}

func droppedIn(l *model.Listener) uint64 {
	if l.Losses == nil {
		return 0
	}
	return l.Losses.DroppedPackets
}

func (s *Story) event(f *Frame) {
	v := &f.Listener.Verdict
	e := Event{At: f.At, Status: v.Status, Cause: v.Cause, Text: v.Summary}
	if p := f.Listener.Process; p != nil {
		e.PID = p.PID
	}
	if n := len(s.Events); n > 0 {
		last := s.Events[n-1]
		if last.Status == e.Status && last.Cause == e.Cause && (e.PID == 0 || last.PID == e.PID) || n == maxEvents {
			return
		}
		if e.PID == 0 {
			e.PID = last.PID
		}
	}
	s.Events = append(s.Events, e)
}

// since is what was counted in the incident: in the window of its first frame,
// and from there to its last.
func since(first, last *Frame) Counted {
	sums := make(map[model.DropKey]uint64)
	var out Counted
	if l := first.Listener.Losses; l != nil {
		for _, d := range l.By {
			sums[d.DropKey] += d.Packets
		}
		out.AbandonedRequests, out.QueueResets = l.AbandonedRequests, l.QueueResets
		if l.Clients != nil {
			out.Clients = new(l.Clients.ClientTotals)
		}
	}
	for _, d := range last.Counted.Dropped {
		sums[d.DropKey] += d.Packets - min(d.Packets, droppedAs(first, d.DropKey))
	}
	for _, cause := range model.DropCauses() {
		for _, packet := range []model.Packet{model.PacketSYN, model.PacketACK, model.PacketUnknown} {
			key := model.DropKey{Cause: cause, Packet: packet}
			if n := sums[key]; n > 0 {
				out.Dropped = append(out.Dropped, model.Drops{DropKey: key, Packets: n})
			}
		}
	}
	a, b := &first.Counted, &last.Counted
	out.AbandonedRequests += b.AbandonedRequests - min(a.AbandonedRequests, b.AbandonedRequests)
	out.QueueResets += b.QueueResets - min(a.QueueResets, b.QueueResets)
	if a.Clients != nil && b.Clients != nil && out.Clients != nil {
		*out.Clients = out.Clients.Add(b.Clients.Sub(*a.Clients))
	}
	return out
}

func droppedAs(f *Frame, key model.DropKey) uint64 {
	for _, d := range f.Counted.Dropped {
		if d.DropKey == key {
			return d.Packets
		}
	}
	return 0
}

// Packets is how many were dropped in the incident.
func (c *Counted) Packets() (sum uint64) {
	for _, d := range c.Dropped {
		sum += d.Packets
	}
	return sum
}
