// Package story tells what a recording says: its course, its worst moment, how the accept
// queue filled, and the answer.
package story

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Story is what a recording says, for a reader who has seen nothing else.
type Story struct {
	Header  recording.Header
	Summary recording.Summary
	Points  []recording.Point   // by second, from a minute before
	Samples []recording.Samples // of the accept queue, from a minute before to two minutes after it began
	Events  []Event
	Worst   recording.Frame // at the worst moment
	Last    recording.Frame
	Counted recording.Counted // in the incident
	Waits   model.Waits       // of the clients that were let in late
	Peak    int               // of the accept queue
	Inside  int               // most clients at once; -1: not known
	Going   bool              // by the agent that records it: it has not ended
	Torn    bool              // the last record was not written to its end
	Damaged int               // records that could not be read
	Saw     []string          // what clients may have seen, the first first
	Stacks  *model.Stacks     // the latest thread dump; nil where there is none
	worsts  []recording.Frame // of each cause
	runs    int               // in Samples
	Room    int               // of the accept queue at first; 0: not known
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

// Read reads a recording.
func Read(in io.Reader) (*Story, error) {
	r, err := recording.NewReader(in)
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
		s.Summary.Pass(b)
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
		return nil, fmt.Errorf("%w; records that could not be read: %d", ErrEmpty, s.Damaged)
	}
	s.Counted = recording.Since(&s.Header.Base, &s.Last.Counted)
	s.settle()
	return s, nil
}

// ErrEmpty says that a recording has no story.
var ErrEmpty = errors.New("the recording holds no frame")

// Continues reports whether the trouble lasts: an agent records a minute more.
func (s *Story) Continues() bool {
	return s.Going && s.Summary.LastSeen.Sub(s.Summary.LastTrouble) < model.Quiet
}

// settle makes the worst moment the worst of the cause that most was lost for: of a server that was overloaded for an hour
// and stopped then it is not that nothing listens.
func (s *Story) settle() {
	for i := range s.worsts {
		if v := &s.worsts[i].Listener.Verdict; v.Cause == s.Summary.Cause && v.Status >= model.StatusSaturated {
			s.Worst = s.worsts[i]
		}
	}
	s.worsts = nil
}

// worstOf keeps the worst frame of each cause.
func (s *Story) worstOf(f *recording.Frame) {
	for i := range s.worsts {
		if s.worsts[i].Listener.Verdict.Cause == f.Listener.Verdict.Cause {
			if worse(&f.Listener, &s.worsts[i].Listener) {
				s.worsts[i] = *f
			}
			return
		}
	}
	if len(s.worsts) < recording.MaxCauses {
		s.worsts = append(s.worsts, *f)
	}
}

func (s *Story) see(f *recording.Frame) {
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
		s.Room = cmp.Or(s.Room, q.Capacity())
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

func (s *Story) points(points []recording.Point) {
	for _, p := range points {
		s.Peak, s.Inside = max(s.Peak, int(p.Peak)), max(s.Inside, int(p.Inside))
		if n := len(s.Points); n > 0 && s.Points[n-1].At == p.At { // a second in parts
			s.Points[n-1] = s.Points[n-1].Merge(p)
		} else if n < 2*recording.MaxFrames {
			s.Points = append(s.Points, p)
		}
	}
}

func (s *Story) samples(list []recording.Samples) {
	for _, one := range list {
		if s.runs += len(one.Runs); s.runs > recording.MaxSamples {
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

func (s *Story) event(f *recording.Frame) {
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

// maxGroups bounds the places of threads that a report names.
const maxGroups = 8

// Threads says where the thread dump shows the threads at work.
func (s *Story) Threads() []string {
	d := s.Stacks
	if d == nil {
		return nil
	}
	out := []string{phrase.Sprintf("At %s, by the JVM's own account, %d of %s handled requests:", d.At.UTC().Format(time.TimeOnly), d.Busy(), phrase.Count(d.Workers, "server thread"))}
	for i := range d.Groups {
		g := &d.Groups[i]
		if !g.Busy() || len(out) > maxGroups {
			break
		}
		line := phrase.Number(g.Threads) + " × " + g.Where()
		if g.State != "" {
			line += " (" + strings.ToLower(strings.ReplaceAll(g.State, "_", " ")) + ")"
		}
		out = append(out, model.Printable(line))
	}
	if d.Deadlocked {
		out = append(out, "The JVM found a deadlock.")
	}
	return out
}
