package recording

import (
	"reflect"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Replay judges a frame again, from the evidence that was recorded. same says
// that the verdict is the recorded one; judged is false where the frame holds no
// evidence.
func (f *Frame) Replay() (v model.Verdict, same, judged bool) {
	v, judged = diagnosis.Again(f.At, &f.Listener, reading.DefaultThresholds())
	return v, judged && reflect.DeepEqual(asRecorded(v, &f.Listener.Verdict), f.Listener.Verdict), judged
}

// asRecorded leaves out what a recording of an older version does not have.
func asRecorded(v model.Verdict, recorded *model.Verdict) model.Verdict {
	if recorded.Answer.What == "" {
		v.Answer = model.Answer{}
	}
	v.Answer.Do = withEffects(v.Answer.Do, recorded.Answer.Do)
	return v
}

// Snapshot is the frame as it was published, of the one listener, with a verdict.
func (f *Frame) Snapshot(h *Header, v model.Verdict) *model.Snapshot {
	l := f.Listener
	l.Verdict, l.Totals = v, f.Counted.totals()
	s := &model.Snapshot{Time: f.At, Host: h.Host, Kernel: h.Kernel, Listeners: []model.Listener{l}}
	if b := l.Basis; b != nil {
		s.Interval = b.Interval
		s.NetNS = []model.NetNS{{ID: h.NetNS, Delta: b.Delta, Sysctl: b.Sysctl}}
	}
	return s
}

// totals are what the screens compare from one frame to the next.
func (c *Counted) totals() model.Totals {
	t := model.Totals{
		Dropped: make(map[model.DropKey]uint64, len(c.Dropped)), AbandonedRequests: c.AbandonedRequests,
		QueueResets: c.QueueResets, Clients: c.Clients,
	}
	for _, d := range c.Dropped {
		t.Dropped[d.DropKey] = d.Packets
	}
	return t
}

// withEffects are the steps with what each would do, which was simulated at that time and
// is judged by nothing that is recorded.
func withEffects(steps, recorded []model.Step) []model.Step {
	out := slices.Clone(steps)
	for i := range min(len(out), len(recorded)) {
		out[i].Effect = recorded[i].Effect
	}
	return out
}

// stands derives for how long nothing was accepted in recordings of format 1, which do not have it: while
// the first in the accept queue stays the same, it grows older by as much as time passes between two
// readings of the connections.
type stands struct {
	read   time.Time
	oldest time.Duration
	since  time.Duration
}

// ageError is how far the ages of a socket may be off: jiffies, and that a reading takes a while.
const ageError = 50 * time.Millisecond

func (s *stands) see(f *Frame) {
	q, c := f.Listener.AcceptQueue, f.Listener.Connections
	if q == nil || q.OldestWait == nil || c == nil || c.Partial {
		*s = stands{}
		return
	}
	read := f.At.Add(-c.Age)
	passed, known := read.Sub(s.read), !s.read.IsZero()
	if (*q.OldestWait - s.oldest - passed).Abs() <= ageError {
		s.since += passed
	} else {
		s.since = 0
	}
	s.read, s.oldest = read, *q.OldestWait
	if known && q.NoAcceptFor == nil {
		q.NoAcceptFor = new(s.since)
	}
}
