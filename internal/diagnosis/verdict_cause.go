package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

// chain lists the full stages from the client inwards.
func (r ruling) chain() []model.Cause {
	var out []model.Cause
	add := func(full bool, c model.Cause) {
		if full {
			out = append(out, c)
		}
	}
	lost := r.lossCause()
	add(r.synQueueFull(), model.CauseSynBacklog)
	add(r.queueFull || r.overflowed() > 0, model.CauseAcceptQueue)
	connections := r.connectionsFull || lost == model.CauseMaxConnections || lost == model.CauseKeepAliveIdle
	add(connections, model.CauseMaxConnections)
	add(r.executorFull, model.CauseExecutorQueue)
	add(r.threadsFull || connections && r.lasting(allThreadsBusy), model.CauseMaxThreads)
	add(r.waits.cause != model.CauseNone, r.waits.cause)
	add(r.filesFull || lost == model.CauseOpenFiles, model.CauseOpenFiles)
	add(r.portsFull, model.CauseEphemeralPorts)
	return out
}

// lossCause is the cause of the packets dropped in the interval, from the snapshots
// around each drop: the one with most of them. Causes that only say "the queue
// was full" rank behind one that says why, if it has a fair share.
func (r ruling) lossCause() model.Cause {
	var all, telling model.Cause
	var total, most, mostTelling uint64
	for _, c := range model.DropCauses() {
		n := r.droppedFor(c)
		total += n
		if n > most {
			all, most = c, n
		}
		if n > mostTelling && c != model.CauseSlowAccept && c != model.CauseAcceptQueue && c != model.CauseSynBacklog {
			telling, mostTelling = c, n
		}
	}
	if mostTelling > 0 && float64(mostTelling) >= r.t.LossShare*float64(total) {
		return telling
	}
	return all
}

// cause names the root of the status.
func (r ruling) cause(s model.Status) model.Cause {
	switch s {
	case model.StatusDown:
		if r.resetInQueue() > 0 {
			return model.CauseListenerClosed
		}
		return model.CauseNoListener
	case model.StatusLosing:
		if r.losses().DroppedPackets == 0 {
			return model.CauseListenerClosed
		}
		return r.losingCause()
	case model.StatusSaturated:
		return r.presentCause()
	case model.StatusWarning:
		return r.warningCause()
	}
	if r.clamped() {
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
func (r ruling) losingCause() model.Cause {
	c := r.lossCause()
	switch c {
	case model.CauseNone, model.CauseAcceptQueue:
		// The limit may be known by now. But that nothing else was full is not to
		// be said of a moment at which nothing could be read.
		if present := r.queueCause(); c == model.CauseNone || present != model.CauseSlowAccept {
			c = present
		}
	case model.CauseSlowAccept:
		present := r.queueCause()
		if r.connectionsFull || r.filesFull || r.stoppedOrStalled() && present != model.CauseCPUSaturated {
			c = present
		}
	case model.CauseMaxConnections:
		present := r.connectionsCause()
		if r.connectionsFull && present != model.CauseCPUSaturated {
			c = present
		}
	}
	if (c == model.CauseSlowAccept || c == model.CauseAcceptQueue) && r.threadsFull && acceptsWithWorkers(r.Now) {
		return model.CauseMaxThreads
	}
	return r.named(c)
}

func (r ruling) stoppedOrStalled() bool {
	return r.either(stopped) || queueWaits(r.Now) && r.stalled() != model.CauseNone
}

// presentCause judges a full stage by the stages behind it.
func (r ruling) presentCause() model.Cause {
	switch {
	case r.halted() || r.either(stopped) && queueWaits(r.Now):
		return model.CauseJVMPause
	case r.connectionsFull:
		return r.connectionsCause()
	case r.filesFull && queueWaits(r.Now):
		return model.CauseOpenFiles
	case r.threadsFull || r.executorFull || r.waits.virtual:
		if c := r.cpuOverrides(); c != model.CauseNone {
			return c
		}
		if r.waits.cause != model.CauseNone {
			return r.waits.cause
		}
		if r.executorFull {
			return model.CauseExecutorQueue
		}
		return model.CauseMaxThreads
	case !r.queueFull:
		return r.starved()
	}
	return r.named(r.queueCause())
}

// named turns what a drop is counted under into what a verdict says: a full
// queue of which nobody knows what is behind it has no cause yet, and a
// queue that is smaller than its owner configured it has that one.
func (r ruling) named(c model.Cause) model.Cause {
	switch {
	case c == model.CauseSlowAccept && r.clamped():
		return model.CauseBacklogClamped
	case c == model.CauseAcceptQueue:
		return model.CauseNone
	}
	return c
}

func (r ruling) warningCause() model.Cause {
	c := r.high()
	switch c {
	case model.CauseAcceptQueue:
		return r.named(r.queueCause())
	case model.CauseMaxConnections:
		if r.mostlyIdleNow() {
			return model.CauseKeepAliveIdle
		}
	}
	return c
}

func (r ruling) mostlyIdleNow() bool {
	n, ok := held(r.Now)
	return ok && model.MostlyIdle(phase(r.Now, model.Idle), n)
}
