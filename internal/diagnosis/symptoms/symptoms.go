// Package symptoms says what the evidence on a listener shows: which stages are full, what
// the busy threads wait for, who failed. It is what a cause may ask; it names none.
package symptoms

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Symptoms are the evidence with what was made of it once.
type Symptoms struct {
	From Input
	reading.Pair
	Interval time.Duration
	whole    time.Duration // the interval of all that was measured, of which Interval may be the latest part
	Delta    model.Counters
	Sysctl   map[string]int
	Closed   *model.Closed
	Shown    *model.Shown
	Limits   []model.Limit

	// Stages that are full, with something waiting in front of them.
	QueueFull, ConnectionsFull, ThreadsFull, ExecutorFull, OutOfFiles, PortsFull bool

	Waits waits // what the busy threads wait for
}

// Of is what the evidence shows.
func Of(e Input, t reading.Thresholds) *Symptoms {
	e.Before = reading.Learned(e.Before, e.Now)
	whole := e.Interval
	if l := e.Now.Lately; l != nil {
		e.Interval, e.Delta = l.Span, l.Delta
	}
	s := &Symptoms{
		From: e, Pair: reading.Pair{Now: e.Now, Before: e.Before, First: e.First, Elapsed: e.Elapsed, T: t},
		Interval: e.Interval, whole: whole, Delta: e.Delta, Sysctl: e.Sysctl, Closed: e.Closed, Shown: e.Shown,
		Limits: e.Now.Limits,
	}
	if !e.Now.Listening() {
		return s
	}
	if s.Limits == nil {
		s.Limits = reading.Headroom(e.Now, e.Before, e.Elapsed, e.Sysctl, t)
	}
	s.QueueFull = s.Lasting(reading.QueueFull)
	s.ConnectionsFull = s.Lasting(reading.QueueWaits) && s.Either(s.AtConnectionLimit) && s.Lasting(s.nearConnectionLimit)
	s.ThreadsFull = s.Lasting(s.ThreadsExhausted)
	s.ExecutorFull = s.Lasting(s.ExecutorNearLimit) && s.Either(reading.ExecutorAtLimit)
	s.OutOfFiles = s.Lasting(s.FilesFull) && !s.ConnectionsFull
	s.PortsFull = s.portsUsedUp()
	s.Waits = s.waitsFor()
	return s
}

// Lasting reports whether a stage is full for more than a moment: in both snapshots,
// or in this one when packets were dropped at the queue in front of it, which
// is a second witness. (The snapshot before may lie before the burst.)
func (s *Symptoms) Lasting(shows func(*model.Listener) bool) bool {
	return shows(s.Now) && (s.Overflowed() > 0 || s.Both(shows))
}

// nearConnectionLimit guards the rule "either snapshot shows the limit reached":
// the other one must at least be close, or the limit was only passed by.
func (s *Symptoms) nearConnectionLimit(l *model.Listener) bool {
	n, ok := reading.SlotsInUse(l)
	if !ok || reading.ConnectionLimit(l) != reading.LimitKnown {
		return false
	}
	// Connections that clients reset are only counted from the second snapshot on
	// that finds the queue not empty: the one before holds them too.
	if l.Connections.Reset == nil && s.Now.Connections.Reset != nil {
		n += *s.Now.Connections.Reset
	}
	return float64(n) >= s.T.High*float64(l.Connector.MaxConnections.Value)
}

func (s *Symptoms) portsUsedUp() bool {
	l, ok := reading.LimitNamed(s.Limits, reading.StageEphemeralPorts)
	return ok && l.Used >= l.Max
}

// Losses are the present ones, never nil.
func (s *Symptoms) Losses() model.Losses {
	switch {
	case s.Now.Lately != nil:
		return s.Now.Lately.Losses
	case s.Now.Losses == nil:
		return model.Losses{}
	}
	return *s.Now.Losses
}

// ResetInQueue is the number of queued clients that were reset because their
// listener closed.
func (s *Symptoms) ResetInQueue() int {
	n := int(s.Losses().QueueResets)
	if s.Closed != nil && (!s.Now.Listening() || s.Now.Lately == nil || s.Closed.Ago < s.Interval) {
		n = max(n, s.Closed.Queued)
	}
	return n
}

// Overflowed is the number of packets dropped at the full accept queue.
func (s *Symptoms) Overflowed() uint64 {
	return s.Losses().DroppedPackets - min(s.Losses().DroppedPackets, s.DroppedFor(model.CauseSynBacklog))
}

// WithoutRoom is for how many clients there was no room: known where their
// handshakes were followed in nearly all of the interval, to the packet, and nobody's
// who is behind a flood. Each had a packet dropped at least.
func (s *Symptoms) WithoutRoom() (n uint64, known bool) {
	c := s.Losses().Clients
	if c == nil || c.Flood != nil || c.Untracked > 0 || c.PacketsLost > 0 || c.Observed < s.Interval*3/4 {
		return 0, false
	}
	n = min(c.WithoutRoom(), s.Overflowed())
	return n, n > 0
}

// DroppedFor is the number of packets dropped for a cause in the interval.
func (s *Symptoms) DroppedFor(c model.Cause) (n uint64) {
	for _, d := range s.Losses().By {
		if d.Cause == c {
			n += d.Packets
		}
	}
	return n
}

// Input is what a verdict on one listener is judged from.
type Input struct {
	// Now and Before are two snapshots of the listener; Before is nil with a single
	// one. Now.Losses are those of Interval, nil when nothing was measured.
	// Now.Limits are used when they are there, else computed by Headroom.
	Now, Before *model.Listener
	// First is set where Before is nil and another snapshot will follow: what takes
	// two snapshots is not said yet. (Else a single snapshot is judged from one.)
	First    bool
	Elapsed  time.Duration // between the two snapshots
	Interval time.Duration // what Now.Losses and Delta span
	// Delta is how far the namespace's counters moved in Interval, nil with one snapshot.
	Delta  model.Counters
	Sysctl map[string]int // of the listener's namespace, as in model.NetNS
	// Closed is set when the listener went away within Interval, whether or not
	// another one took its place.
	Closed *model.Closed
	// Shown is the state that was shown before, nil without one: as long as there is
	// trouble what its verdict advised is the least that is advised.
	Shown *model.Shown
}

// Basis is the evidence without the listener, to be kept with it.
func (e *Input) Basis() *model.Basis {
	b := &model.Basis{
		First: e.First, Elapsed: e.Elapsed, Interval: e.Interval,
		Delta: e.Delta, Sysctl: e.Sysctl, Closed: e.Closed,
	}
	if e.Before != nil {
		before := *e.Before
		before.Basis, before.Verdict, before.Totals = nil, model.Verdict{}, model.Totals{}
		before.Lately, before.Recent = nil, nil
		b.Before = &before
	}
	return b
}
