package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// status is the worst that the evidence shows.
func (j *judge) status() model.Status {
	switch {
	case j.onlyElsewhere():
		return model.StatusWarning
	case !j.Now.Listening() && j.Now.Expected:
		return model.StatusDown
	case j.losses().DroppedPackets > 0 || j.resetInQueue() > 0 || j.turnsAway():
		return model.StatusLosing
	case j.saturated():
		return model.StatusSaturated
	case j.high() != model.CauseNone || j.queueWaitsLong() || j.requestsStand():
		return model.StatusWarning
	}
	return model.StatusOK
}

// onlyElsewhere: nothing was seen to listen here, and it does in another network namespace, so that
// the wrong one may have been asked.
func (j *judge) onlyElsewhere() bool {
	return !j.Now.Listening() && j.Now.Expected && j.Now.Elsewhere != nil && j.Now.Last == nil && j.Closed == nil
}

// turnsAway: clients fail though no packet was dropped at the listener. Of those that were let in
// and had no answer some always leave by themselves, as a browser does that is sent elsewhere.
func (j *judge) turnsAway() bool {
	unanswered, ended := j.unanswered()
	return j.gaveUp()+j.stillTry()+j.stalledClients()+j.refused()+j.resetByServer() > 0 || unanswered > 0 && unansweredPart*unanswered >= ended
}

// onlyUnanswered: clients were let in and had no answer, and nothing else was lost.
func (j *judge) onlyUnanswered() bool {
	n, _ := j.unanswered()
	return n > 0 && j.losses().DroppedPackets == 0 && j.gaveUp()+j.stillTry()+j.stalledClients()+j.refused()+j.resetByServer() == 0
}

// failsUnseen: clients fail, and no packet was dropped.
func (j *judge) failsUnseen() bool { return j.losses().DroppedPackets == 0 && j.turnsAway() }

// unansweredPart: one of this many clients without an answer is too many.
const unansweredPart = 20

// onlyStands: that is all there is to warn of.
func (j *judge) onlyStands(v model.Verdict) bool {
	return v.Status == model.StatusWarning && j.high() == model.CauseNone
}

// saturated: a stage is full and something waits in front of it. In front of
// a full accept queue are the handshakes, in front of maxConnections the
// accept queue, in front of the threads the requests that nobody has read, in front
// of a pool of connections the requests that virtual threads have begun. A
// process without descriptors or ports only makes wait what it cannot take, one that
// does not run makes wait whoever comes.
func (j *judge) saturated() bool {
	return j.queueFull || j.connectionsFull || j.threadsFull || j.waits.virtual ||
		j.filesFull && j.Both(reading.QueueWaits) ||
		j.executorFull && reading.WaitingRequests(j.Now) > 0 ||
		j.nobodyAccepts() ||
		j.halted() || j.Both(reading.WithoutPoller) && j.Both(reading.UnreadAny) || j.starved() != model.CauseNone
}

// seenOnce: a stage is full in this snapshot. That is no state yet, but not nothing
// either.
func (j *judge) seenOnce() bool {
	e := j.from
	e.Before, e.First = nil, false
	return newJudge(e, j.catalogue, j.T).saturated()
}

// high names the stage that is at 80 % or more in two snapshots. Connections only
// count when clients wait or the forecast fills them, threads when clients wait:
// they come and go too fast to be forecast.
func (j *judge) high() model.Cause {
	return outranking(j.catalogue, func(c *cause) certainty { return when(c.near != nil && c.near(j), surely) }).name
}

// threadsWanted reports whether requests wait and the threads that are free are
// not many more than these. On a busy server some are always on their way to one.
func (j *judge) threadsWanted(l *model.Listener) bool {
	most, _ := reading.MaxThreads(l)
	busy, _ := reading.BusyThreads(l)
	waiting := reading.WaitingRequests(l)
	return waiting > 0 && float64(busy+waiting) >= j.T.ThreadsBusy*float64(most)
}

// stageHigh reports whether a stage is at 80 % or more in both snapshots. The limits
// of the snapshot before are computed again: its sysctls are those of now.
func (j *judge) stageHigh(name string) bool {
	l, ok := reading.LimitNamed(j.limits, name)
	if !ok || l.Ratio < j.T.High {
		return false
	}
	if j.Before == nil {
		return !j.First
	}
	was, ok := reading.LimitNamed(reading.Headroom(j.Before, nil, 0, j.Sysctl, j.T), name)
	return ok && was.Ratio >= j.T.High
}

// fills reports whether a stage will be full within the horizon.
func (j *judge) fills(name string) bool {
	l, ok := reading.LimitNamed(j.limits, name)
	return ok && l.FullIn != nil && *l.FullIn <= j.T.Horizon
}

// connectionsHigh leaves idle keep-alive connections out of the count: they
// alone never warn. When clients wait in the accept queue, they count.
func (j *judge) connectionsHigh() bool {
	if !j.stageHigh(reading.StageMaxConnections) {
		return false
	}
	if j.Both(j.queueStands) {
		return true
	}
	return j.fills(reading.StageMaxConnections) && j.Both(func(l *model.Listener) bool {
		n, ok := reading.Held(l)
		return ok && reading.ConnectionLimit(l) == reading.LimitKnown &&
			float64(n-reading.Phase(l, model.Idle)) >= j.T.High*float64(l.Connector.MaxConnections.Value)
	})
}
