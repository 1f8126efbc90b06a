package incident

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Story is what a recording says, for a reader who has seen nothing else.
type Story struct {
	Header  Header
	Summary Summary
	Points  []Point   // by second, from a minute before
	Samples []Samples // of the accept queue, from a minute before to two minutes after it began
	Events  []Event
	Worst   Frame // at the worst moment
	Last    Frame
	Counted Counted       // in the incident
	Waits   model.Waits   // of the clients that were let in late
	Peak    int           // of the accept queue
	Inside  int           // most clients at once; -1: not known
	Going   bool          // by the agent that records it: it has not ended
	Torn    bool          // the last record was not written to its end
	Damaged int           // records that could not be read
	Saw     []string      // what clients may have seen, the first first
	Stacks  *model.Stacks // the latest thread dump; nil where there is none
	worst   []Frame       // of each cause
	runs    int           // in Samples
	room    int           // of the accept queue at first; 0: not known
}

// Event is a change of status, of cause or of the process.
type Event struct {
	At     time.Time
	Status model.Status
	Cause  model.Cause
	Text   string
	PID    int // 0 where it is not known
}

// maxSaw bounds what clients may have seen.
const maxSaw = 8

// maxEvents bounds the events of a listener that flaps.
const maxEvents = 200

// Tell reads a recording.
func Tell(in io.Reader) (*Story, error) {
	r, err := NewReader(in)
	if err != nil {
		return nil, err
	}
	s := &Story{Header: r.Header, Summary: r.Header.Summary(), Inside: -1}
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if s.Summary.Frames == 0 {
			s.Worst = *f
		}
		s.see(f)
	}
	s.Torn, s.Damaged = r.Torn, r.Damaged
	if b := &r.Behind; !b.At.IsZero() {
		s.Summary.pass(b)
		s.points(b.Points)
		s.samples(b.Samples)
		if b.Counted != nil {
			s.Last.Counted = *b.Counted
		}
	}
	if r.End != nil {
		s.Summary.Ended, s.Summary.Reason = r.End.At, r.End.Reason
		if n := r.End.Summary.TurnedAway; n != nil {
			s.Summary.TurnedAway = n // also of frames for which there was no room
		}
	}
	if s.Summary.Frames == 0 {
		return nil, fmt.Errorf("%w; records that could not be read: %d", errEmpty, s.Damaged)
	}
	s.Counted = since(&s.Header.Base, &s.Last.Counted)
	s.settle()
	return s, nil
}

var errEmpty = errors.New("the recording holds no frame")

// Continues reports whether the trouble lasts: an agent records a minute more.
func (s *Story) Continues() bool {
	return s.Going && s.Summary.LastSeen.Sub(s.Summary.LastTrouble) < model.Quiet
}

// settle makes the worst moment one of the cause that most was lost for, where there is
// one as bad.
func (s *Story) settle() {
	for i := range s.worst {
		if v := &s.worst[i].Listener.Verdict; v.Cause == s.Summary.Cause && v.Status == s.Worst.Listener.Verdict.Status {
			s.Worst = s.worst[i]
		}
	}
	s.worst = nil
}

// worstOf keeps the worst frame of each cause.
func (s *Story) worstOf(f *Frame) {
	for i := range s.worst {
		if s.worst[i].Listener.Verdict.Cause == f.Listener.Verdict.Cause {
			if worse(&f.Listener, &s.worst[i].Listener) {
				s.worst[i] = *f
			}
			return
		}
	}
	if len(s.worst) < maxCauses {
		s.worst = append(s.worst, *f)
	}
}

func (s *Story) see(f *Frame) {
	s.Summary.See(f)
	if worse(&f.Listener, &s.Worst.Listener) {
		s.Worst = *f
	}
	s.worstOf(f)
	s.Last = *f
	s.points(f.Points)
	s.samples(f.Samples)
	if q := f.Listener.AcceptQueue; q != nil {
		s.Peak = max(s.Peak, q.Length)
		s.room = cmp.Or(s.room, q.Capacity())
	}
	if l := f.Listener.Losses; l != nil {
		for _, saw := range l.WorstCase {
			if !slices.Contains(s.Saw, saw) && len(s.Saw) < maxSaw {
				s.Saw = append(s.Saw, saw)
			}
		}
		if l.Clients != nil {
			s.Waits = s.Waits.And(l.Clients.Waits)
		}
	}
	if p := f.Listener.Process; p != nil && p.Stacks != nil {
		s.Stacks = p.Stacks
	}
	s.event(f)
}

func (s *Story) points(points []Point) {
	for _, p := range points {
		s.Peak, s.Inside = max(s.Peak, int(p.Peak)), max(s.Inside, int(p.Inside))
		if n := len(s.Points); n > 0 && s.Points[n-1].At == p.At { // a second in parts
			s.Points[n-1] = s.Points[n-1].merge(p)
		} else if n < 2*maxFrames {
			s.Points = append(s.Points, p)
		}
	}
}

// maxSamples bounds how many runs a report draws: a recording has some thousands.
const maxSamples = 200_000

func (s *Story) samples(list []Samples) {
	for _, one := range list {
		if s.runs += len(one.Runs); s.runs > maxSamples {
			return
		}
		s.Samples = append(s.Samples, one)
	}
}

// worse compares two moments: by status, then by what was lost, then by how much
// was found out, which in the first moments of a trouble is little.
func worse(a, b *model.Listener) bool {
	if a.Verdict.Status != b.Verdict.Status {
		return a.Verdict.Status > b.Verdict.Status
	}
	if x, y := lostIn(a), lostIn(b); x != y {
		return x > y
	}
	return len(a.Verdict.Findings) > len(b.Verdict.Findings)
}

// lostIn are packets and connections in one number: one listener that closes loses
// connections and drops nothing more, so that the two are not compared.
func lostIn(l *model.Listener) uint64 {
	lost := l.Losses
	if l.Lately != nil {
		lost = &l.Lately.Losses
	}
	if lost == nil {
		return 0
	}
	return lost.DroppedPackets + lost.QueueResets
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
