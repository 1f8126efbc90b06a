package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// halted: the process is stopped or frozen, and clients wait for it: in the accept
// queue, or for the answer to a request.
func (j *judge) halted() bool {
	return j.both(stopped) && j.both(func(l *model.Listener) bool { return queueWaits(l) || inHand(l) > 0 })
}

// inHand are the requests that are seen to have come and not to be answered.
func inHand(l *model.Listener) int {
	return waitingRequests(l) + phase(l, model.InService) + phase(l, model.Sending)
}

// standsLong: clients have waited for a second and more in front of a server that
// seems to have room. Why is not known, but that is not ok.
func (j *judge) standsLong() bool {
	return j.queueBeforeRoom() && j.Now.AcceptQueue.OldestWait != nil && *j.Now.AcceptQueue.OldestWait >= longWaiting
}

// queueBeforeRoom: the accept queue stands though not all connections are taken.
func (j *judge) queueBeforeRoom() bool {
	_, ok := held(j.Now)
	return ok && !inexact(j.Now) && j.both(j.queueStands) && connectionLimit(j.Now) == limitKnown && !j.connectionsFull
}

// queueStands reports whether connections wait, and do not only pass through.
func (j *judge) queueStands(l *model.Listener) bool {
	return queueWaits(l) && (l.AcceptQueue.OldestWait == nil || *l.AcceptQueue.OldestWait >= j.t.Passing)
}

// requestsStand: in both snapshots a request has been there for a second and longer of
// which nobody has read a byte, and no limit of the threads explains it. A thread that is
// free takes one within a millisecond (NioEndpoint.Poller).
func (j *judge) requestsStand() bool {
	return !j.threadsFull && !j.executorFull && isTomcat(j.Now) && j.both(unreadLong)
}

// nextStand is the same of a connection's later request: but of one of those the
// handler may have read the head, and not the body.
func (j *judge) nextStand() bool {
	return !j.threadsFull && !j.executorFull && isTomcat(j.Now) && j.both(func(l *model.Listener) bool {
		return l.Connections != nil && l.Connections.UnreadNext >= longWaiting
	})
}

// waitsForNothing: clients wait for seconds for what the process has threads and
// connections for.
func (j *judge) waitsForNothing() bool {
	return (j.requestsStand() || j.standsLong() || j.nextStand()) && !j.allHaveOne()
}

// cpuShortBeside: another cause is named, but as many threads as a tenth of the busy ones
// waited for a CPU all the time. The others may wait for a lock that one of these has.
func (j *judge) cpuShortBeside(c model.Cause) bool {
	busy, seen := busyThreads(j.Now)
	switch c {
	case model.CauseMaxThreads, model.CauseExecutorQueue, model.CauseMaxConnections:
		return seen && j.share(runDelay) >= max(2*j.t.RunDelay, float64(busy)/10) && j.throttling().share() < j.t.ThrottledShare
	}
	return false
}

// allHaveOne: every thread of the pool has a request, so that it is not for want of a CPU
// that others wait.
func (j *judge) allHaveOne() bool {
	busy, seen := busyThreads(j.Now)
	return seen && j.Now.Connector.PoolThreads != nil && busy >= *j.Now.Connector.PoolThreads
}

// threadsFree: some of the pool's threads are known to have none.
func (j *judge) threadsFree() bool {
	busy, seen := busyThreads(j.Now)
	return seen && j.Now.Connector.PoolThreads != nil && busy < *j.Now.Connector.PoolThreads
}
