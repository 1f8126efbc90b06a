package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// cause names the root of the status.
func (j *judge) cause(s model.Status) model.Cause {
	switch s {
	case model.StatusDown:
		return j.presentCause()
	case model.StatusLosing:
		if j.losses().DroppedPackets == 0 {
			return j.failingCause()
		}
		return j.losingCause()
	case model.StatusSaturated:
		return j.presentCause()
	case model.StatusWarning:
		if j.onlyElsewhere() {
			return j.presentCause()
		}
		return j.warningCause()
	}
	if j.clamped() {
		return model.CauseBacklogClamped
	}
	return model.CauseNone
}

// failingCause is why clients fail though nothing was dropped lately: what shows it, else
// what was dropped before, whose clients may give up only now.
func (j *judge) failingCause() model.Cause {
	if c := j.presentCause(); c != model.CauseNone || j.Now.Recent == nil {
		return c
	}
	return j.named(j.Now.Recent.Cause)
}

// losingCause is what dropped the packets. The snapshots around the drops say it,
// unless all they say is that the queue was full and the present state of what
// empties it says more: at the start of a burst the queue overflows for a moment
// before the connections run out, and a pause of the JVM's is reported when it is
// over. Busy threads alone keep nobody from accepting and drop no packet.
//
// Whether threads lacked a CPU, the snapshots around the drops have weighed; one
// look in which they do, as in any burst on a busy machine, does not outweigh
// them. A quota that throttles is certain.
func (j *judge) losingCause() model.Cause {
	if j.lostInFront() {
		return model.CauseBeforeListener
	}
	c := j.lossCause()
	onlyFull := c == model.CauseNone || c == model.CauseAcceptQueue || c == model.CauseSlowAccept
	if (onlyFull || c == model.CauseCPUSaturated) && j.holds(surely) == model.CauseNotAccepting {
		return model.CauseNotAccepting
	}
	switch c {
	case model.CauseNone, model.CauseAcceptQueue:
		// The limit may be known by now. But that nothing else was full is not to
		// be said of a moment at which nothing could be read.
		if present := j.queueCause(); c == model.CauseNone || present != model.CauseSlowAccept {
			c = present
		}
	case model.CauseSlowAccept:
		present := j.queueCause()
		if j.connectionsFull || j.filesFull || j.stoppedOrStalled() && present != model.CauseCPUSaturated {
			c = present
		}
	case model.CauseMaxConnections:
		if present := j.presentCause(); j.connectionsFull && present != model.CauseCPUSaturated {
			c = present
		}
	}
	if (c == model.CauseSlowAccept || c == model.CauseAcceptQueue) && j.threadsFull && reading.AcceptsWithWorkers(j.Now) {
		return model.CauseMaxThreads
	}
	return j.named(c)
}

// stoppedOrStalled: the process did not run between the snapshots, and clients wait.
func (j *judge) stoppedOrStalled() bool {
	stalled := j.Throttling().Share() >= j.T.ThrottledShare || j.StoodStill() || j.Share(reading.RunDelay) >= j.T.RunDelay
	return j.Either(reading.Stopped) || reading.QueueWaits(j.Now) && stalled
}

// presentCause judges a full stage by the stages behind it.
func (j *judge) presentCause() model.Cause {
	if c := j.holds(surely); c != model.CauseNone {
		return c
	}
	if !j.queueFull {
		return j.starved()
	}
	return j.named(j.queueCause())
}

// named turns what a drop is counted under into what a verdict says: a full
// queue of which nobody knows what is behind it has no cause yet, and a
// queue that is smaller than its owner configured it has that one.
func (j *judge) named(c model.Cause) model.Cause {
	switch {
	case c == model.CauseSlowAccept && j.clamped():
		return model.CauseBacklogClamped
	case c == model.CauseAcceptQueue:
		return model.CauseNone
	}
	return c
}

func (j *judge) warningCause() model.Cause {
	c := j.high()
	if c == model.CauseAcceptQueue {
		return j.named(j.queueCause())
	}
	return c
}

func (j *judge) mostlyIdleNow() bool {
	n, ok := reading.Held(j.Now)
	return ok && model.MostlyIdle(j.Now.Connections.Unused(), n)
}
