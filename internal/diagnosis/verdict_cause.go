package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/backlog"

// chain lists the full stages from the client inwards.
func (j *judge) chain() []backlog.Cause {
	var out []backlog.Cause
	add := func(full bool, c backlog.Cause) {
		if full {
			out = append(out, c)
		}
	}
	lost := j.lossCause()
	add(j.synQueueFull(), backlog.CauseSynBacklog)
	add(j.queueFull || j.overflowed() > 0, backlog.CauseAcceptQueue)
	connections := j.connectionsFull || lost == backlog.CauseMaxConnections || lost == backlog.CauseKeepAliveIdle
	add(connections, backlog.CauseMaxConnections)
	add(j.executorFull, backlog.CauseExecutorQueue)
	add(j.threadsFull || connections && j.lasting(allThreadsBusy), backlog.CauseMaxThreads)
	add(j.filesFull || lost == backlog.CauseOpenFiles, backlog.CauseOpenFiles)
	add(j.portsFull, backlog.CauseEphemeralPorts)
	return out
}

// allThreadsBusy is a full stage even with no request waiting behind it: where
// threads are as many as connections, none can.
func allThreadsBusy(l *backlog.Listener) bool {
	most, ok := maxThreads(l)
	busy, seen := busyThreads(l)
	return ok && seen && busy >= most
}

// synQueueFull: a packet or two dropped there for want of memory are no stage
// that is full.
func (j *judge) synQueueFull() bool {
	n := j.droppedFor(backlog.CauseSynBacklog)
	return n > 0 && float64(n) >= j.t.LossShare*float64(j.losses().DroppedPackets)
}

// droppedFor is the number of packets dropped for a cause in the interval.
func (j *judge) droppedFor(c backlog.Cause) (n uint64) {
	for _, d := range j.losses().By {
		if d.Cause == c {
			n += d.Packets
		}
	}
	return n
}

// overflowed is the number of packets dropped at the full accept queue.
func (j *judge) overflowed() uint64 {
	return j.losses().DroppedPackets - min(j.losses().DroppedPackets, j.droppedFor(backlog.CauseSynBacklog))
}

// lossCause is the cause of the packets dropped in the interval, from the looks
// around each drop: the one with most of them. Causes that only say "the queue
// was full" stand back behind one that says why, if it has a fair share.
func (j *judge) lossCause() backlog.Cause {
	var all, telling backlog.Cause
	var total, most, mostTelling uint64
	for _, c := range backlog.DropCauses() {
		n := j.droppedFor(c)
		total += n
		if n > most {
			all, most = c, n
		}
		if n > mostTelling && c != backlog.CauseSlowAccept && c != backlog.CauseAcceptQueue && c != backlog.CauseSynBacklog {
			telling, mostTelling = c, n
		}
	}
	if mostTelling > 0 && float64(mostTelling) >= j.t.LossShare*float64(total) {
		return telling
	}
	return all
}

// cause names the root of the status.
func (j *judge) cause(s backlog.Status) backlog.Cause {
	switch s {
	case backlog.StatusDown:
		if j.resetInQueue() > 0 {
			return backlog.CauseListenerClosed
		}
		return backlog.CauseNoListener
	case backlog.StatusLosing:
		if j.losses().DroppedPackets == 0 {
			return backlog.CauseListenerClosed
		}
		return j.losingCause()
	case backlog.StatusSaturated:
		return j.presentCause()
	case backlog.StatusWarning:
		return j.warningCause()
	}
	if j.clamped() {
		return backlog.CauseBacklogClamped
	}
	return backlog.CauseNone
}

// losingCause is what dropped the packets. The looks around the drops say it,
// unless all they say is that the queue was full and the present state of what
// empties it says more: at the start of a burst the queue overflows for a moment
// before the connections run out, and a pause of the JVM's is told when it is
// over. Busy threads alone keep nobody from accepting and drop no packet.
//
// Whether threads lacked a CPU, the looks around the drops have weighed; one
// look in which they do, as in any burst on a busy machine, does not outweigh
// them. A quota that throttles is certain.
func (j *judge) losingCause() backlog.Cause {
	c := j.lossCause()
	switch c {
	case backlog.CauseNone, backlog.CauseAcceptQueue:
		c = j.queueCause() // the limit may be known by now
	case backlog.CauseSlowAccept:
		present := j.queueCause()
		if j.connectionsFull || j.filesFull || j.stoppedOrStalled() && present != backlog.CauseCPUSaturated {
			c = present
		}
	case backlog.CauseMaxConnections:
		present := j.connectionsCause()
		if j.connectionsFull && present != backlog.CauseCPUSaturated {
			c = present
		}
	}
	return j.named(c)
}

func (j *judge) stoppedOrStalled() bool {
	return j.either(stopped) || queueWaits(j.Now) && j.stalled() != backlog.CauseNone
}

// presentCause judges a full stage by what stands behind it.
func (j *judge) presentCause() backlog.Cause {
	switch {
	case j.either(stopped) && queueWaits(j.Now):
		return backlog.CauseJVMPause
	case j.connectionsFull:
		return j.connectionsCause()
	case j.filesFull && queueWaits(j.Now):
		return backlog.CauseOpenFiles
	case j.threadsFull || j.executorFull:
		if c := j.cpuOverrides(); c != backlog.CauseNone {
			return c
		}
		if j.executorFull {
			return backlog.CauseExecutorQueue
		}
		return backlog.CauseMaxThreads
	}
	return j.named(j.queueCause())
}

// named turns what a drop is counted under into what a verdict says: a full
// queue of which nobody knows what stands behind it has no cause yet, and a
// queue that is smaller than its owner configured it has that one.
func (j *judge) named(c backlog.Cause) backlog.Cause {
	switch {
	case c == backlog.CauseSlowAccept && j.clamped():
		return backlog.CauseBacklogClamped
	case c == backlog.CauseAcceptQueue:
		return backlog.CauseNone
	}
	return c
}

func (j *judge) warningCause() backlog.Cause {
	c := j.high()
	switch c {
	case backlog.CauseAcceptQueue:
		return j.named(j.queueCause())
	case backlog.CauseMaxConnections:
		if j.mostlyIdleNow() {
			return backlog.CauseKeepAliveIdle
		}
	}
	return c
}

func (j *judge) mostlyIdleNow() bool {
	n, ok := held(j.Now)
	return ok && float64(phase(j.Now, backlog.Idle)) > j.t.IdleMajority*float64(n)
}

// clamped tells whether less of acceptCount is in force than was configured.
// Where a source that could not be read may have configured less, only a queue
// of just net.core.somaxconn is taken for it.
func (j *judge) clamped() bool {
	q := j.Now.AcceptQueue
	n, ok := acceptCount(j.Now)
	if !ok || q == nil || n <= q.Limit {
		return false
	}
	return !j.Now.Connector.AcceptCount.Uncertain || j.Sysctl["somaxconn"] == q.Limit
}

// acceptCount is the configured one. Values ≤ 0 are ignored by Tomcat, and one
// read from the kernel is the limit in force itself.
func acceptCount(l *backlog.Listener) (int, bool) {
	if l == nil || l.Connector == nil || l.Connector.AcceptCount == nil {
		return 0, false
	}
	s := l.Connector.AcceptCount
	return s.Value, s.Value > 0 && s.Kind != backlog.SourceKernel
}
