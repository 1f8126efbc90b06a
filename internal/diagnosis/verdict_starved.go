package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// halted: the process is stopped or frozen, and clients wait for it: in the accept
// queue, or for the answer to a request.
func (r ruling) halted() bool {
	return r.both(stopped) && r.both(func(l *model.Listener) bool { return queueWaits(l) || inHand(l) > 0 })
}

// inHand are the requests that are seen to have come and not to be answered.
func inHand(l *model.Listener) int {
	return waitingRequests(l) + phase(l, model.InService) + phase(l, model.Sending)
}

// standsLong: clients have waited for a second and more in front of a server that
// seems to have room. Why is not known, but that is not ok.
func (r ruling) standsLong() bool {
	return r.queueBeforeRoom() && r.Now.AcceptQueue.OldestWait != nil && *r.Now.AcceptQueue.OldestWait >= longWaiting
}

// queueBeforeRoom: the accept queue stands though not all connections are taken.
func (r ruling) queueBeforeRoom() bool {
	_, ok := held(r.Now)
	return ok && !inexact(r.Now) && r.both(r.queueStands) && connectionLimit(r.Now) == limitKnown && !r.connectionsFull
}

// queueStands reports whether connections wait, and do not only pass through.
func (r ruling) queueStands(l *model.Listener) bool {
	return queueWaits(l) && (l.AcceptQueue.OldestWait == nil || *l.AcceptQueue.OldestWait >= r.t.Passing)
}

// requestsStand: in both snapshots a request has been there for a second and longer of
// which nobody has read a byte, and no limit of the threads explains it. A thread that is
// free takes one within a millisecond (NioEndpoint.Poller).
func (r ruling) requestsStand() bool {
	return !r.threadsFull && !r.executorFull && isTomcat(r.Now) && r.both(unreadLong)
}

// nextStand is the same of a connection's later request: but of one of those the
// handler may have read the head, and not the body.
func (r ruling) nextStand() bool {
	return !r.threadsFull && !r.executorFull && isTomcat(r.Now) && r.both(func(l *model.Listener) bool {
		return l.Connections != nil && l.Connections.UnreadNext >= longWaiting
	})
}

// starved names what keeps a process from what it has threads and connections for,
// while clients wait for seconds.
func (r ruling) starved() model.Cause {
	if !r.requestsStand() && !r.standsLong() && !r.nextStand() || r.allHaveOne() {
		return model.CauseNone
	}
	switch {
	case r.throttling().share() >= r.t.CPUOverrides: // then a safepoint takes as long
		return model.CauseCPUThrottled
	case r.stoodStill():
		return model.CauseJVMPause
	case r.share(runDelay) >= 2*r.t.RunDelay && r.threadsFree():
		return model.CauseCPUSaturated
	}
	return model.CauseNone
}

// cpuShortBeside: another cause is named, but as many threads as a tenth of the busy ones
// waited for a CPU all the time. The others may wait for a lock that one of these has.
func (r ruling) cpuShortBeside(c model.Cause) bool {
	busy, seen := busyThreads(r.Now)
	switch c {
	case model.CauseMaxThreads, model.CauseExecutorQueue, model.CauseMaxConnections:
		return seen && r.share(runDelay) >= max(2*r.t.RunDelay, float64(busy)/10) && r.throttling().share() < r.t.ThrottledShare
	}
	return false
}

// allHaveOne: every thread of the pool has a request, so that it is not for want of a CPU
// that others wait.
func (r ruling) allHaveOne() bool {
	busy, seen := busyThreads(r.Now)
	return seen && r.Now.Connector.PoolThreads != nil && busy >= *r.Now.Connector.PoolThreads
}

// threadsFree: some of the pool's threads are known to have none.
func (r ruling) threadsFree() bool {
	busy, seen := busyThreads(r.Now)
	return seen && r.Now.Connector.PoolThreads != nil && busy < *r.Now.Connector.PoolThreads
}
