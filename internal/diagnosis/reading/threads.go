package reading

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// MaxThreads is the size of the worker pool; virtual threads have none. It is
// not known where more requests are being served than the configuration allows
// threads: it was overruled, by code that sets another executor for example.
func MaxThreads(l *model.Listener) (int, bool) {
	if l == nil || l.Connector == nil || l.Connector.MaxThreads == nil || VirtualThreads(l) {
		return 0, false
	}
	n := l.Connector.MaxThreads.Value
	if busy, seen := BusyThreads(l); outgrown(l) || seen && l.Connector.PoolThreads == nil && busy > n {
		return 0, false
	}
	return n, n > 0
}

// beside is how many threads may bear a worker's name that are none: those that a
// Tomcat of another version has for itself.
const beside = 2

// outgrown: the connector's own pool has more threads than it may have as configured,
// so that another limit is in force: set by code, or over JMX (setMaxThreads counts at
// once).
func outgrown(l *model.Listener) bool {
	if l == nil || l.Connector == nil || l.Connector.MaxThreads == nil || l.Connector.PoolThreads == nil || l.Connector.Executor != "" {
		return false
	}
	return *l.Connector.PoolThreads > l.Connector.MaxThreads.Value+beside
}

// BusyThreads is how many threads have a request in hand, where it is known.
func BusyThreads(l *model.Listener) (int, bool) {
	if l == nil {
		return 0, false
	}
	n, known := l.BusyThreads()
	return n, known == model.BusyIsKnown
}

// Hidden means that requests cannot be distinguished on the connections.
func Hidden(l *model.Listener) bool {
	return l != nil && l.Connector != nil && (l.Connector.TLS || l.Connector.HTTP2)
}

// NotObservable means that it cannot be known from outside how many threads are busy, and
// the application was not asked.
func NotObservable(l *model.Listener) bool { return Hidden(l) && l.Connector.BusyThreads == nil }

// poolAtMax reports whether the pool has all the threads it may have, from the
// thread names. known is false where they cannot be counted.
func poolAtMax(l *model.Listener) (atMax, known bool) {
	most, ok := MaxThreads(l)
	if !ok || l.Connector.PoolThreads == nil {
		return false, false
	}
	return *l.Connector.PoolThreads >= most, true
}

// AcceptsWithWorkers reports whether the listener's connector does.
func AcceptsWithWorkers(l *model.Listener) bool {
	return l != nil && l.Connector != nil && l.Connector.AcceptsWithWorkers()
}

// WaitingForThread are the requests that no thread has begun to read, and the
// connections that no thread has accepted where that takes one of the same.
func WaitingForThread(l *model.Listener) int {
	n := WaitingRequests(l)
	if AcceptsWithWorkers(l) {
		n += Queued(l)
	}
	return n
}

// BoundedQueue is the configured length of the executor's queue. Tomcat's own
// default has no bound.
func BoundedQueue(l *model.Listener) (int, bool) {
	if l == nil || l.Connector == nil || l.Connector.MaxQueue == nil {
		return 0, false
	}
	q := l.Connector.MaxQueue
	const unbounded = 1<<31 - 1 // Integer.MAX_VALUE
	return q.Value, q.Value >= 0 && q.Value < unbounded
}

// ExecutorWaiting are the requests in the executor's queue, those of all
// connectors that share it.
func ExecutorWaiting(l *model.Listener) int {
	if l != nil && l.Connector != nil && l.Connector.Shared != nil {
		return l.Connector.Shared.Waiting
	}
	return WaitingRequests(l)
}

// ExecutorAtLimit means that the executor's bounded queue has no place left.
func ExecutorAtLimit(l *model.Listener) bool {
	n, ok := BoundedQueue(l)
	return ok && ExecutorWaiting(l) >= n
}

// Gate is a configured valve that lets fewer requests through than there are threads, nil
// without one: the other threads wait in it.
func Gate(l *model.Listener) *model.Setting[int] {
	if l == nil || l.Connector == nil || l.Connector.Gate == nil {
		return nil
	}
	if most, known := MaxThreads(l); !known || l.Connector.Gate.Value >= most {
		return nil
	}
	return l.Connector.Gate
}

// AllThreadsBusy is a full stage even with no request waiting behind it: where
// threads are as many as connections, none can.
func AllThreadsBusy(l *model.Listener) bool {
	most, ok := MaxThreads(l)
	busy, seen := BusyThreads(l)
	return ok && seen && busy >= most
}

// StacksOf is the thread dump that a process has given, nil where there is none.
func StacksOf(l *model.Listener) *model.Stacks {
	if l == nil || l.Process == nil {
		return nil
	}
	return l.Process.Stacks
}

// StandStill reports whether the threads of a group do not run.
func StandStill(g *model.StackGroup) bool {
	return g.State == "BLOCKED" || strings.HasSuffix(g.State, "WAITING")
}

// WithoutPoller reports whether the thread that hands requests to the others is not there.
func WithoutPoller(l *model.Listener) bool {
	return l != nil && l.Connector != nil && l.Connector.WithoutPoller
}

// PollerBlocked reports whether that thread waits for something that is not its task, as a worker does.
func PollerBlocked(l *model.Listener) bool {
	d := DownstreamOf(l)
	return d != nil && d.Workers != nil && d.Workers.PollerBlocked
}

// PollerAway reports whether it is known to wait so by itself, as where an executor runs requests in it: not at a safepoint.
func PollerAway(l *model.Listener) bool {
	return PollerBlocked(l) && DownstreamOf(l).Workers.PollerAway
}

// Suspended means that the connector's threads stand, and for no limit: the poller waits for something itself, and a
// request has been unread for a second, or a client's end unnoticed, while workers are idle. At the connection latch the
// acceptor alone stands.
func Suspended(l *model.Listener) bool {
	if !PollerBlocked(l) || PollerAway(l) || !UnreadLong(l) && Phase(l, model.ClientClosed) == 0 || l.Connector == nil || l.Connector.PoolThreads == nil {
		return false
	}
	busy, seen := BusyThreads(l)
	return seen && busy < *l.Connector.PoolThreads
}

// UnreadAny means that requests are there that nobody has read, of clients that are there or have left.
func UnreadAny(l *model.Listener) bool { return WaitingRequests(l) > 0 }

// ShareExecutors gives to the connectors of a process that have one Executor together
// (an <Executor> of server.xml: StandardThreadExecutor) what all of them use of it.
// Of a connector that is not among the listeners it is not known. The connectors are
// replaced, not changed.
func ShareExecutors(listeners []model.Listener) {
	type pool struct {
		pid  int
		name string
	}
	users := make(map[pool][]*model.Listener)
	for i := range listeners {
		l := &listeners[i]
		if l.Process != nil && l.Connector != nil && l.Connector.Executor != "" {
			p := pool{l.Process.PID, l.Connector.Executor}
			users[p] = append(users[p], l)
		}
	}
	for _, sharing := range users {
		all := max(len(sharing), sharing[0].Connector.ExecutorUsers)
		if all < 2 {
			continue
		}
		use := usedTogether(sharing)
		if use.Connectors = all; len(sharing) < all {
			use.Busy = nil
		}
		for _, l := range sharing {
			c := *l.Connector
			c.Shared = use
			l.Connector = &c
		}
	}
}

func usedTogether(listeners []*model.Listener) *model.SharedPool {
	out := &model.SharedPool{Connectors: len(listeners), Busy: new(int)}
	for _, l := range listeners {
		out.Waiting += WaitingRequests(l)
		busy, seen := BusyThreads(l)
		if !seen {
			out.Busy = nil
		}
		if out.Busy != nil {
			*out.Busy += busy
		}
	}
	return out
}
