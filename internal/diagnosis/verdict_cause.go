package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

// chain lists the full stages from the client inwards.
func (j *judge) chain() []model.Cause {
	var out []model.Cause
	add := func(full bool, c model.Cause) {
		if full {
			out = append(out, c)
		}
	}
	lost := j.lossCause()
	add(j.synQueueFull(), model.CauseSynBacklog)
	add(j.queueFull || j.overflowed() > 0, model.CauseAcceptQueue)
	connections := j.connectionsFull || lost == model.CauseMaxConnections || lost == model.CauseKeepAliveIdle
	add(connections, model.CauseMaxConnections)
	add(j.executorFull, model.CauseExecutorQueue)
	add(j.threadsFull || connections && j.lasting(allThreadsBusy), model.CauseMaxThreads)
	add(j.waits.cause != model.CauseNone, j.waits.cause)
	add(j.filesFull || lost == model.CauseOpenFiles, model.CauseOpenFiles)
	add(j.portsFull, model.CauseEphemeralPorts)
	return out
}

// lossCause is the cause of the packets dropped in the interval, from the snapshots
// around each drop: the one with most of them. Causes that only say "the queue
// was full" rank behind one that says why, if it has a fair share.
func (j *judge) lossCause() model.Cause {
	var all, telling model.Cause
	var total, most, mostTelling uint64
	for _, c := range model.DropCauses() {
		n := j.droppedFor(c)
		total += n
		if n > most {
			all, most = c, n
		}
		if n > mostTelling && c != model.CauseSlowAccept && c != model.CauseAcceptQueue && c != model.CauseSynBacklog {
			telling, mostTelling = c, n
		}
	}
	if mostTelling > 0 && float64(mostTelling) >= j.t.LossShare*float64(total) {
		return telling
	}
	return all
}

// cause names the root of the status.
func (j *judge) cause(s model.Status) model.Cause {
	switch s {
	case model.StatusDown:
		if j.resetInQueue() > 0 {
			return model.CauseListenerClosed
		}
		return model.CauseNoListener
	case model.StatusLosing:
		if j.losses().DroppedPackets == 0 {
			return model.CauseListenerClosed
		}
		return j.losingCause()
	case model.StatusSaturated:
		return j.presentCause()
	case model.StatusWarning:
		return j.warningCause()
	}
	if j.clamped() {
		return model.CauseBacklogClamped
	}
	return model.CauseNone
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
	c := j.lossCause()
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
		present := j.connectionsCause()
		if j.connectionsFull && present != model.CauseCPUSaturated {
			c = present
		}
	}
	if (c == model.CauseSlowAccept || c == model.CauseAcceptQueue) && j.threadsFull && acceptsWithWorkers(j.Now) {
		return model.CauseMaxThreads
	}
	return j.named(c)
}

func (j *judge) stoppedOrStalled() bool {
	return j.either(stopped) || queueWaits(j.Now) && j.stalled() != model.CauseNone
}

// presentCause judges a full stage by the stages behind it.
func (j *judge) presentCause() model.Cause {
	switch {
	case j.halted() || j.either(stopped) && queueWaits(j.Now):
		return model.CauseJVMPause
	case j.connectionsFull:
		return j.connectionsCause()
	case j.filesFull && queueWaits(j.Now):
		return model.CauseOpenFiles
	case j.threadsFull || j.executorFull || j.waits.virtual:
		if c := j.cpuOverrides(); c != model.CauseNone {
			return c
		}
		if j.waits.cause != model.CauseNone {
			return j.waits.cause
		}
		if j.executorFull {
			return model.CauseExecutorQueue
		}
		return model.CauseMaxThreads
	case !j.queueFull:
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
	switch c {
	case model.CauseAcceptQueue:
		return j.named(j.queueCause())
	case model.CauseMaxConnections:
		if j.mostlyIdleNow() {
			return model.CauseKeepAliveIdle
		}
	}
	return c
}

func (j *judge) mostlyIdleNow() bool {
	n, ok := held(j.Now)
	return ok && model.MostlyIdle(phase(j.Now, model.Idle), n)
}
