package symptoms

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Symptoms are the evidence with what was made of it once.
type Symptoms struct {
	From Evidence
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
func Of(e Evidence, t reading.Thresholds) *Symptoms {
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
	n, ok := reading.Held(l)
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
