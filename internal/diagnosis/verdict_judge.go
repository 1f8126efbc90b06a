package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// judge is the evidence with what was made of it once.
type judge struct {
	from Evidence
	reading.Pair
	Interval time.Duration
	Delta    model.Counters
	Sysctl   map[string]int
	Closed   *model.Closed
	Shown    *model.Shown
	limits   []model.Limit

	// Stages that are full, with something waiting in front of them.
	queueFull, connectionsFull, threadsFull, executorFull, filesFull, portsFull bool

	waits waits // what the busy threads wait for

	numbers string // see okNumbers

	catalogue []cause
}

func newJudge(e Evidence, all []cause, t reading.Thresholds) *judge {
	e.Before = reading.Learned(e.Before, e.Now)
	if l := e.Now.Lately; l != nil {
		e.Interval, e.Delta = l.Span, l.Delta
	}
	j := &judge{
		from: e, Pair: reading.Pair{Now: e.Now, Before: e.Before, First: e.First, Elapsed: e.Elapsed, T: t},
		Interval: e.Interval, Delta: e.Delta, Sysctl: e.Sysctl, Closed: e.Closed, Shown: e.Shown,
		limits: e.Now.Limits, catalogue: all,
	}
	if !e.Now.Listening() {
		return j
	}
	if j.limits == nil {
		j.limits = reading.Headroom(e.Now, e.Before, e.Elapsed, e.Sysctl, t)
	}
	j.queueFull = j.lasting(reading.QueueFull)
	j.connectionsFull = j.lasting(reading.QueueWaits) && j.Either(j.AtConnectionLimit) && j.lasting(j.nearConnectionLimit)
	j.threadsFull = j.lasting(j.ThreadsExhausted)
	j.executorFull = j.lasting(j.ExecutorNearLimit) && j.Either(reading.ExecutorAtLimit)
	j.filesFull = j.lasting(j.FilesFull) && !j.connectionsFull
	j.portsFull = j.portsUsedUp()
	j.waits = j.waitsFor()
	return j
}

// lasting reports whether a stage is full for more than a moment: in both snapshots,
// or in this one when packets were dropped at the queue in front of it, which
// is a second witness. (The snapshot before may lie before the burst.)
func (j *judge) lasting(shows func(*model.Listener) bool) bool {
	return shows(j.Now) && (j.overflowed() > 0 || j.Both(shows))
}

// nearConnectionLimit guards the rule "either snapshot shows the limit reached":
// the other one must at least be close, or the limit was only passed by.
func (j *judge) nearConnectionLimit(l *model.Listener) bool {
	n, ok := reading.Held(l)
	if !ok || reading.ConnectionLimit(l) != reading.LimitKnown {
		return false
	}
	// Connections that clients reset are only counted from the second snapshot on
	// that finds the queue not empty: the one before holds them too.
	if l.Connections.Reset == nil && j.Now.Connections.Reset != nil {
		n += *j.Now.Connections.Reset
	}
	return float64(n) >= j.T.High*float64(l.Connector.MaxConnections.Value)
}

func (j *judge) portsUsedUp() bool {
	l, ok := reading.LimitNamed(j.limits, reading.StageEphemeralPorts)
	return ok && l.Used >= l.Max
}

// losses are the present ones, never nil.
func (j *judge) losses() model.Losses {
	switch {
	case j.Now.Lately != nil:
		return j.Now.Lately.Losses
	case j.Now.Losses == nil:
		return model.Losses{}
	}
	return *j.Now.Losses
}

// resetInQueue is the number of queued clients that were reset because their
// listener closed.
func (j *judge) resetInQueue() int {
	n := int(j.losses().QueueResets)
	if j.Closed != nil && (!j.Now.Listening() || j.Now.Lately == nil || j.Closed.Ago < j.Interval) {
		n = max(n, j.Closed.Queued)
	}
	return n
}

// overflowed is the number of packets dropped at the full accept queue.
func (j *judge) overflowed() uint64 {
	return j.losses().DroppedPackets - min(j.losses().DroppedPackets, j.droppedFor(model.CauseSynBacklog))
}

// withoutRoom is for how many clients there was no room: known where their
// handshakes were followed in nearly all of the interval, to the packet, and nobody's
// who is behind a flood. Each had a packet dropped at least.
func (j *judge) withoutRoom() (n uint64, known bool) {
	c := j.losses().Clients
	if c == nil || c.Flood != nil || c.Untracked > 0 || c.PacketsLost > 0 || c.Observed < j.Interval*3/4 {
		return 0, false
	}
	n = min(c.WithoutRoom(), j.overflowed())
	return n, n > 0
}

// orMore is for what withoutRoom says where handshakes are followed for no longer than
// the interval: clients that came before, and still try, are not among them.
func (j *judge) orMore(clients uint64) string {
	s := phrase.Count(clients, "client")
	if j.losses().Clients.Observed < j.Interval {
		s += " or more"
	}
	return s
}

// droppedFor is the number of packets dropped for a cause in the interval.
func (j *judge) droppedFor(c model.Cause) (n uint64) {
	for _, d := range j.losses().By {
		if d.Cause == c {
			n += d.Packets
		}
	}
	return n
}
