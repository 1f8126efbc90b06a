package symptoms

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Halted means that the process is stopped or frozen, and clients wait for it: in the accept
// queue, or for the answer to a request.
func (s *Symptoms) Halted() bool {
	return s.Both(reading.Stopped) && s.Both(func(l *model.Listener) bool { return reading.QueueWaits(l) || reading.InHand(l) > 0 })
}

// MayBeHalted is the same where whether anybody waits for an answer cannot be seen, and clients are connected.
func (s *Symptoms) MayBeHalted() bool {
	return s.Both(reading.Stopped) && s.Both(func(l *model.Listener) bool { return reading.Hidden(l) && reading.Asked(l) })
}

// WorkerStands means that worker processes are stopped, others or the first process accept, and requests are in hand, some of which
// may be theirs.
func (s *Symptoms) WorkerStands() bool {
	stopped := func(l *model.Listener) bool { n, _ := reading.StoppedWorkers(l); return n > 0 }
	return reading.WorkerStopped(s.Now) && s.Both(stopped) && s.Both(func(l *model.Listener) bool {
		return reading.QueueWaits(l) || reading.InHand(l) > 0 || reading.StillAccepts(l) && (reading.Left(l) > 0 || reading.Hidden(l) && reading.Asked(l))
	})
}

// InLongSafepoint means that the JVM has stood still for a second and longer, and does, while clients wait for it as
// in front of a process that is halted: also those whose requests threads have in hand.
func (s *Symptoms) InLongSafepoint() bool {
	p := s.Now.Process
	return !s.First && p != nil && p.InSafepoint != nil && *p.InSafepoint >= reading.LongWaiting && (reading.QueueWaits(s.Now) || reading.InHand(s.Now) > 0)
}

// StandsMostly means that the JVM stands still for so much of the time that its clients wait for it. One
// collection of half a second is nothing to warn of: it was for something else, or the heap has no room left.
func (s *Symptoms) StandsMostly() bool {
	_, full := reading.HeapFull(s.Now)
	return !s.First && s.PausedMost() && (full || s.PausedOtherwise()) && (reading.QueueWaits(s.Now) || reading.InHand(s.Now) > 0) &&
		!s.ThrottledMost() && !s.ShortOfCPU()
}

// StandsLong means that clients have waited for a second and more in front of a server that
// seems to have room. Why is not known, but that is not ok.
func (s *Symptoms) StandsLong() bool {
	return s.QueueBeforeRoom() && reading.WaitsLong(s.Now)
}

// QueueWaitsLong is the same whether there is room or that is not known.
func (s *Symptoms) QueueWaitsLong() bool {
	return s.Both(s.QueueStands) && reading.WaitsLong(s.Now)
}

// QueueBeforeRoom means that the accept queue stands though not all connections are taken.
func (s *Symptoms) QueueBeforeRoom() bool {
	_, ok := reading.SlotsInUse(s.Now)
	return ok && !reading.Inexact(s.Now) && s.Both(s.QueueStands) && reading.ConnectionLimit(s.Now) == reading.LimitKnown && !s.ConnectionsFull
}

// QueueStands reports whether connections wait, and do not only pass through.
func (s *Symptoms) QueueStands(l *model.Listener) bool {
	old := reading.OldestWait(l)
	return reading.QueueWaits(l) && (old == nil || *old >= s.T.Passing)
}

// Unacknowledged means that in both snapshots clients acknowledge nothing.
func (s *Symptoms) Unacknowledged() bool {
	return s.Both(func(l *model.Listener) bool { return reading.Unacknowledged(l) > 0 })
}

// Forgotten means that in both snapshots something in between no longer knows connections.
func (s *Symptoms) Forgotten() bool {
	return s.Both(func(l *model.Listener) bool { return reading.Forgotten(l) > 0 })
}

// LeftUnanswered means that clients left whose requests were begun, or waited, as many as a fifth of the requests at least: fewer are
// those of people who click again.
func (s *Symptoms) LeftUnanswered() bool {
	n := s.Losses().AbandonedRequests
	opens, known := s.Delta["PassiveOpens"]
	return s.Now.Listening() && n >= leftLeast && known && 5*n >= max(opens, s.requestsAtLeast())
}

// requestsAtLeast is how many requests there were, by the connections that are kept: one on each, and one in every two seconds on those
// that are idle between their requests, and were used within that time in both snapshots.
func (s *Symptoms) requestsAtLeast() uint64 {
	connected, _ := reading.SlotsInUse(s.Now)
	if s.Now.Connections == nil || s.Before == nil || s.Before.Connections == nil {
		return uint64(max(connected, 0))
	}
	asked := min(s.Now.Connections.Recent, s.Before.Connections.Recent) * int(s.Interval/(2*time.Second))
	return uint64(max(connected, asked, 0))
}

// leftLeast is of how many of them that is said.
const leftLeast = 3

// LeftInside means that in both snapshots clients had closed while the server still had their requests. A Tomcat that stands still, or
// whose threads are all busy, does not see that an idle client has closed either.
func (s *Symptoms) LeftInside() bool {
	p := s.Now.Process
	still := p != nil && p.InSafepoint != nil || reading.Stopped(s.Now) || s.PausedMost() || reading.WithoutPoller(s.Now) || reading.PollerBlocked(s.Now)
	return !still && !s.ThreadsFull && !s.ExecutorFull && s.Both(func(l *model.Listener) bool { return reading.Left(l) > 0 }) && s.closedBoth()
}

// closedBoth is what shows that clients have closed, and not ended their own side alone to read their answers: a close_notify, a part of
// their answers that they have had, others who had none, or that it has been for longer than anybody waits.
func (s *Symptoms) closedBoth() bool {
	n, ended := s.Unanswered()
	c, k := s.Now.Connections, s.Now.Connector
	return reading.IsTomcat(s.Now) && (k.TLS || 2*c.ClosedIdle >= c.Phases[model.ClientClosed]) || n > 0 && 5*n >= ended || s.LeftUnanswered() || c.LeftFor >= longLeft
}

// longLeft is for how long nobody waits who has ended its own side alone.
const longLeft = 10 * time.Second

// RequestsStand means that in both snapshots a request has been there for a second and longer of
// which nobody has read a byte, and no limit of the threads explains it, whatever the server is. A thread that
// is free takes one within a millisecond (NioEndpoint.Poller), and so does an event loop.
func (s *Symptoms) RequestsStand() bool {
	return !s.ThreadsFull && !s.ExecutorFull && s.Both(reading.UnreadLong)
}

// nextStand is the same of a connection's later request: but of one of those the
// handler may have read the head, and not the body.
func (s *Symptoms) nextStand() bool {
	return !s.ThreadsFull && !s.ExecutorFull && reading.IsTomcat(s.Now) && s.Both(func(l *model.Listener) bool {
		return l.Connections != nil && l.Connections.UnreadNext >= reading.LongWaiting
	})
}

// WaitsForNothing means that clients wait for seconds for what the process has threads and
// connections for.
func (s *Symptoms) WaitsForNothing() bool {
	return (s.RequestsStand() || s.StandsLong() || s.nextStand()) && !s.AllHaveOne()
}

// CPUShortBeside means that though another cause is named, as many threads as a tenth of the busy ones
// waited for a CPU all the time. The others may wait for a lock that one of these has; where all of the busy ones
// wait for something else, those are threads that have no request: the JVM's own, as compilers and collectors.
func (s *Symptoms) CPUShortBeside(c model.Cause) bool {
	busy, seen := reading.BusyThreads(s.Now)
	if d := reading.DownstreamOf(s.Now); d != nil && d.Workers != nil && d.Workers.Running == 0 && s.Inside() >= busy {
		return false
	}
	switch c {
	case model.CauseMaxThreads, model.CauseExecutorQueue, model.CauseMaxConnections:
		return seen && s.Fraction(reading.RunDelay) >= max(2*s.T.RunDelay, float64(busy)/10) && s.Throttling().Fraction() < s.T.ThrottledFraction
	}
	return false
}

// MoreWouldWait means that though another cause is named, most of the busy threads were on a CPU, or waited
// for one: more of them would share the same CPUs.
func (s *Symptoms) MoreWouldWait(c model.Cause) bool {
	busy, _ := reading.BusyThreads(s.Now)
	d := reading.DownstreamOf(s.Now)
	return s.CPUShortBeside(c) && d != nil && d.Workers != nil && 2*d.Workers.Running > busy
}

// AllHaveOne means that every thread of the pool has a request, so that it is not for want of a CPU
// that others wait.
func (s *Symptoms) AllHaveOne() bool {
	busy, seen := reading.BusyThreads(s.Now)
	c := s.Now.Connector
	return seen && c != nil && c.PoolThreads != nil && busy >= *c.PoolThreads
}

// ThreadsFree means that some of the pool's threads are known to have none.
func (s *Symptoms) ThreadsFree() bool {
	busy, seen := reading.BusyThreads(s.Now)
	c := s.Now.Connector
	return seen && c != nil && c.PoolThreads != nil && busy < *c.PoolThreads
}
