package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

// status is the worst that the evidence shows.
func (r ruling) status() model.Status {
	switch {
	case !r.Now.Listening() && r.Now.Expected:
		return model.StatusDown
	case r.losses().DroppedPackets > 0 || r.resetInQueue() > 0:
		return model.StatusLosing
	case r.saturated():
		return model.StatusSaturated
	case r.high() != model.CauseNone || r.standsLong() || r.requestsStand():
		return model.StatusWarning
	}
	return model.StatusOK
}

// onlyStands: that is all there is to warn of.
func (r ruling) onlyStands(v model.Verdict) bool {
	return v.Status == model.StatusWarning && r.high() == model.CauseNone
}

// saturated: a stage is full and something waits in front of it. In front of
// a full accept queue are the handshakes, in front of maxConnections the
// accept queue, in front of the threads the requests that nobody has read, in front
// of a pool of connections the requests that virtual threads have begun. A
// process without descriptors or ports only makes wait what it cannot take, one that
// does not run makes wait whoever comes.
func (r ruling) saturated() bool {
	return r.queueFull || r.connectionsFull || r.threadsFull || r.waits.virtual ||
		r.filesFull && r.both(queueWaits) ||
		r.executorFull && waitingRequests(r.Now) > 0 ||
		r.halted() || r.starved() != model.CauseNone
}

// seenOnce: a stage is full in this snapshot. That is no state yet, but not nothing
// either.
func (r ruling) seenOnce() bool {
	e := r.Evidence
	e.Before, e.First = nil, false
	return ruling{newJudge(e, r.t)}.saturated()
}

// high names the stage that is at 80 % or more in two snapshots. Connections only
// count when clients wait or the forecast fills them, threads when clients wait:
// they come and go too fast to be forecast.
func (r ruling) high() model.Cause {
	switch {
	case r.stageHigh(stageAcceptQueue):
		return model.CauseAcceptQueue
	case r.stageHigh(stageOpenFiles):
		return model.CauseOpenFiles
	case r.stageHigh(stageEphemeralPorts):
		return model.CauseEphemeralPorts
	case r.connectionsHigh():
		return model.CauseMaxConnections
	case r.executorFull:
		return model.CauseExecutorQueue
	case r.stageHigh(stageMaxThreads) && (r.both(r.threadsWanted) || r.both(hidden) && r.both(allThreadsBusy)):
		return model.CauseMaxThreads // what waits on hidden connections is not seen
	}
	return model.CauseNone
}

// threadsWanted reports whether requests wait and the threads that are free are
// not many more than these. On a busy server some are always on their way to one.
func (r ruling) threadsWanted(l *model.Listener) bool {
	most, _ := maxThreads(l)
	busy, _ := busyThreads(l)
	waiting := waitingRequests(l)
	return waiting > 0 && float64(busy+waiting) >= r.t.ThreadsBusy*float64(most)
}

// stageHigh reports whether a stage is at 80 % or more in both snapshots. The limits
// of the snapshot before are computed again: its sysctls are those of now.
func (r ruling) stageHigh(name string) bool {
	l, ok := limitNamed(r.limits, name)
	if !ok || l.Ratio < r.t.High {
		return false
	}
	if r.Before == nil {
		return !r.First
	}
	was, ok := limitNamed(Headroom(r.Before, nil, 0, r.Sysctl, r.t), name)
	return ok && was.Ratio >= r.t.High
}

// fills reports whether a stage will be full within the horizon.
func (r ruling) fills(name string) bool {
	l, ok := limitNamed(r.limits, name)
	return ok && l.FullIn != nil && *l.FullIn <= r.t.Horizon
}

// connectionsHigh leaves idle keep-alive connections out of the count: they
// alone never warn. When clients wait in the accept queue, they count.
func (r ruling) connectionsHigh() bool {
	if !r.stageHigh(stageMaxConnections) {
		return false
	}
	if r.both(r.queueStands) {
		return true
	}
	return r.fills(stageMaxConnections) && r.both(func(l *model.Listener) bool {
		n, ok := held(l)
		return ok && connectionLimit(l) == limitKnown &&
			float64(n-phase(l, model.Idle)) >= r.t.High*float64(l.Connector.MaxConnections.Value)
	})
}
