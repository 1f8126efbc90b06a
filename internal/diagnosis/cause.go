package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// cause names the root of the status.
func (j *judge) cause(s model.Status) model.Cause {
	switch s {
	case model.StatusDown:
		return j.presentCause()
	case model.StatusLosing:
		if j.s.Losses().DroppedPackets == 0 {
			return j.failingCause()
		}
		return j.losingCause()
	case model.StatusSaturated:
		return j.presentCause()
	case model.StatusWarning:
		if j.s.OnlyElsewhere() {
			return j.presentCause()
		}
		return j.warningCause()
	}
	if j.s.Clamped() {
		return model.CauseBacklogClamped
	}
	return model.CauseNone
}

// failingCause is why clients fail though nothing was dropped lately: what shows it, else
// what was dropped before, whose clients may give up only now. Those whose listener closed
// have failed at once, and those that were let in when the trouble was over are not its.
func (j *judge) failingCause() model.Cause {
	c, recent := j.presentCause(), j.s.Now.Recent
	if c != model.CauseNone || recent == nil || recent.Cause == model.CauseListenerClosed || j.s.RefusedEarlier() || j.s.MostlyUnanswered() && j.s.AfterTrouble() {
		return c
	}
	return j.named(recent.Cause)
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
	if _, back := j.s.NoWayBack(); back != "" || j.s.LostInFront() || j.s.MostlyRejected() {
		return model.CauseBeforeListener
	}
	c := j.lossCause()
	onlyFull := c == model.CauseNone || c == model.CauseAcceptQueue || c == model.CauseSlowAccept
	if onlyFull || c == model.CauseCPUSaturated {
		if present := j.holds(causes.Surely); present == model.CauseNotAccepting || present == model.CauseNotReading {
			return present
		}
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
		if j.s.ConnectionsFull || j.s.OutOfFiles || j.stoppedOrStalled() && present != model.CauseCPUSaturated {
			c = present
		}
	case model.CauseMaxConnections, model.CauseKeepAliveIdle:
		// Of clients that keep their connections most are idle at one moment, and few at the next.
		if present := j.presentCause(); j.s.ConnectionsFull && present != model.CauseCPUSaturated {
			c = present
		}
	case model.CauseCPUSaturated, model.CauseCPUThrottled:
		// At the start of a burst the acceptor of a busy machine waits for a CPU, too, or for quota. Who found no room then would not
		// find any now: the limit was reached since, unless that is so because the busy threads lack a CPU.
		if present := j.presentCause(); j.s.ConnectionsFull && present != model.CauseNone {
			c = present
		}
	}
	if j.s.ThreadsFull && reading.AcceptsWithWorkers(j.s.Now) && j.forWantOfWorkers(c) {
		return j.presentCause()
	}
	if e := j.entry(c); e.Excluded(j.s) {
		return model.CauseNone
	}
	return j.named(c)
}

// forWantOfWorkers: packets that were counted under this cause were dropped while all workers served requests and
// none was left to accept: it takes a connection only when it is done with another, as at a limit of these.
func (j *judge) forWantOfWorkers(c model.Cause) bool {
	switch c {
	case model.CauseSlowAccept, model.CauseAcceptQueue:
		return true
	case model.CauseCPUSaturated:
		return !j.s.ShortOfCPU()
	case model.CauseMaxConnections:
		return !j.s.ConnectionsFull && reading.ConnectionLimit(j.s.Now) == reading.LimitKnown
	}
	return false
}

// stoppedOrStalled: the process did not run between the snapshots, and clients wait.
func (j *judge) stoppedOrStalled() bool {
	stalled := j.s.ThrottledMuch() || j.s.Paused() || j.s.Fraction(reading.RunDelay) >= j.s.T.RunDelay
	return j.s.Either(reading.Stopped) || reading.QueueWaits(j.s.Now) && stalled
}

// presentCause judges a full stage by the stages behind it.
func (j *judge) presentCause() model.Cause {
	if c := j.holds(causes.Surely); c != model.CauseNone {
		return c
	}
	if !j.s.QueueFull {
		return j.starved()
	}
	return j.named(j.queueCause())
}

// named turns what a drop is counted under into what a verdict says: a full
// queue of which nobody knows what is behind it has no cause yet, and a
// queue that is smaller than its owner configured it has that one.
func (j *judge) named(c model.Cause) model.Cause {
	switch {
	case c == model.CauseSlowAccept && j.s.Clamped():
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
