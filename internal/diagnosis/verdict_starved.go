package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// halted: the process is stopped or frozen, and clients wait for it: in the accept
// queue, or for the answer to a request.
func (j *judge) halted() bool {
	return j.Both(reading.Stopped) && j.Both(func(l *model.Listener) bool { return reading.QueueWaits(l) || reading.InHand(l) > 0 })
}

// standsLong: clients have waited for a second and more in front of a server that
// seems to have room. Why is not known, but that is not ok.
func (j *judge) standsLong() bool {
	return j.queueBeforeRoom() && j.Now.AcceptQueue.OldestWait != nil && *j.Now.AcceptQueue.OldestWait >= reading.LongWaiting
}

// queueWaitsLong is the same whether there is room or that is not known.
func (j *judge) queueWaitsLong() bool {
	return j.Both(j.queueStands) && j.Now.AcceptQueue.OldestWait != nil && *j.Now.AcceptQueue.OldestWait >= reading.LongWaiting
}

// queueBeforeRoom: the accept queue stands though not all connections are taken.
func (j *judge) queueBeforeRoom() bool {
	_, ok := reading.Held(j.Now)
	return ok && !reading.Inexact(j.Now) && j.Both(j.queueStands) && reading.ConnectionLimit(j.Now) == reading.LimitKnown && !j.connectionsFull
}

// queueStands reports whether connections wait, and do not only pass through.
func (j *judge) queueStands(l *model.Listener) bool {
	return reading.QueueWaits(l) && (l.AcceptQueue.OldestWait == nil || *l.AcceptQueue.OldestWait >= j.T.Passing)
}

// requestsStand: in both snapshots a request has been there for a second and longer of
// which nobody has read a byte, and no limit of the threads explains it. A thread that is
// free takes one within a millisecond (NioEndpoint.Poller).
func (j *judge) requestsStand() bool {
	return !j.threadsFull && !j.executorFull && reading.IsTomcat(j.Now) && j.Both(reading.UnreadLong)
}

// nextStand is the same of a connection's later request: but of one of those the
// handler may have read the head, and not the body.
func (j *judge) nextStand() bool {
	return !j.threadsFull && !j.executorFull && reading.IsTomcat(j.Now) && j.Both(func(l *model.Listener) bool {
		return l.Connections != nil && l.Connections.UnreadNext >= reading.LongWaiting
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
	busy, seen := reading.BusyThreads(j.Now)
	switch c {
	case model.CauseMaxThreads, model.CauseExecutorQueue, model.CauseMaxConnections:
		return seen && j.Share(reading.RunDelay) >= max(2*j.T.RunDelay, float64(busy)/10) && j.Throttling().Share() < j.T.ThrottledShare
	}
	return false
}

// allHaveOne: every thread of the pool has a request, so that it is not for want of a CPU
// that others wait.
func (j *judge) allHaveOne() bool {
	busy, seen := reading.BusyThreads(j.Now)
	return seen && j.Now.Connector.PoolThreads != nil && busy >= *j.Now.Connector.PoolThreads
}

// threadsFree: some of the pool's threads are known to have none.
func (j *judge) threadsFree() bool {
	busy, seen := reading.BusyThreads(j.Now)
	return seen && j.Now.Connector.PoolThreads != nil && busy < *j.Now.Connector.PoolThreads
}
