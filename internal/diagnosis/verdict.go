// Package diagnosis turns looks and counters into a verdict: whose packets
// were dropped, which limit did it, what the clients saw and what to change.
// It is pure: it reads no clock, no file and no socket, and imports nothing of
// the project but the domain's values.
package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Evidence is what a verdict on one listener is judged from.
type Evidence struct {
	// Now and Before are two looks at the listener; Before is nil with a single
	// one. Now.Losses are those of Interval, nil when nothing was measured.
	// Now.Limits are used when they are there, else computed by Headroom.
	Now, Before *model.Listener
	// First is set where Before is nil and another look will follow: what takes
	// two looks is not said yet. (Else a single look is judged from one.)
	First    bool
	Elapsed  time.Duration // between the two looks
	Interval time.Duration // what Now.Losses and Delta span
	// Delta is how far the namespace's counters moved in Interval, nil with one look.
	Delta  model.Counters
	Sysctl map[string]int // of the listener's namespace, as in model.NetNS
	// Closed is set when the listener went away within Interval, whether or not
	// another one took its place.
	Closed *Closed
}

// Closed is a listener that went away.
type Closed = model.Closed

// Judge says how a listener stands, which limit is the cause, and what to do.
func Judge(e Evidence, t Thresholds) model.Verdict {
	if e.Now == nil {
		return model.Verdict{}
	}
	j := newJudge(e, t)
	v := model.Verdict{Status: j.status(), Chain: j.chain()}
	v.Cause = j.cause(v.Status)
	v.Summary = j.summary(v)
	v.Findings = j.findings(v)
	return v
}

// judge is the evidence with what was made of it once.
type judge struct {
	Evidence
	pair
	limits []model.Limit

	// Stages that are full, with something waiting in front of them.
	queueFull, connectionsFull, threadsFull, executorFull, filesFull, portsFull bool
}

func newJudge(e Evidence, t Thresholds) *judge {
	j := &judge{Evidence: e, pair: pair{now: e.Now, before: e.Before, first: e.First, elapsed: e.Elapsed, t: t}, limits: e.Now.Limits}
	if !e.Now.Listening() {
		return j
	}
	if j.limits == nil {
		j.limits = Headroom(e.Now, e.Before, e.Elapsed, e.Sysctl, t)
	}
	j.queueFull = j.lasting(queueFull)
	j.connectionsFull = j.lasting(queueWaits) && j.either(j.atConnectionLimit) && j.lasting(j.nearConnectionLimit)
	j.threadsFull = j.lasting(j.threadsExhausted)
	j.executorFull = j.lasting(j.executorNearLimit) && j.either(executorAtLimit)
	j.filesFull = j.lasting(j.pair.filesFull) && !j.connectionsFull
	j.portsFull = j.portsUsedUp()
	return j
}

// lasting tells whether a stage is full for more than a moment: in both looks,
// or in this one when packets were dropped at the queue in front of it, which
// is a second witness. (The look before may lie before the burst.)
func (j *judge) lasting(shows func(*model.Listener) bool) bool {
	return shows(j.Now) && (j.overflowed() > 0 || j.both(shows))
}

// nearConnectionLimit guards the rule "either look shows the limit reached":
// the other one must at least be close, or the limit was only passed by.
func (j *judge) nearConnectionLimit(l *model.Listener) bool {
	n, ok := held(l)
	if !ok || connectionLimit(l) != limitKnown {
		return false
	}
	// Connections that clients reset are only counted from the second look on
	// that finds the queue not empty: the one before holds them too.
	if l.Connections.Reset == nil && j.Now.Connections.Reset != nil {
		n += *j.Now.Connections.Reset
	}
	return float64(n) >= j.t.High*float64(l.Connector.MaxConnections.Value)
}

func (j *judge) portsUsedUp() bool {
	l, ok := limitNamed(j.limits, stageEphemeralPorts)
	return ok && l.Used >= l.Max
}

// losses are never nil.
func (j *judge) losses() model.Losses {
	if j.Now.Losses == nil {
		return model.Losses{}
	}
	return *j.Now.Losses
}

// resetInQueue is the number of queued clients that were reset because their
// listener closed.
func (j *judge) resetInQueue() int {
	n := int(j.losses().QueueResets)
	if j.Closed != nil {
		n = max(n, j.Closed.Queued)
	}
	return n
}
