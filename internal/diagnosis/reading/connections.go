package reading

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Limit says what is known of maxConnections.
type Limit int

// What may be known of it.
const (
	LimitUnknown Limit = iota
	LimitNone          // maxConnections=-1
	LimitKnown
)

// ConnectionLimit says what is known of the maxConnections of a listener.
func ConnectionLimit(l *model.Listener) Limit {
	switch {
	case l == nil || l.Connector == nil || l.Connector.MaxConnections == nil:
		return LimitUnknown
	case l.Connector.MaxConnections.Value < 0:
		return LimitNone
	}
	return LimitKnown
}

// UncertainLimit means that a maxConnections that is not reached, but may be overruled by
// what could not be read, does not show that there is room inside.
func UncertainLimit(l *model.Listener) bool {
	return ConnectionLimit(l) != LimitUnknown && l.Connector.MaxConnections.Uncertain
}

// SlotsUncounted means that clients wait in front of slots that seem free, and those of
// connections that clients reset have not been counted, or cannot be: they may be
// all that are missing.
func SlotsUncounted(l *model.Listener) bool {
	return l != nil && l.Connections != nil && l.Connections.Reset == nil && ConnectionLimit(l) == LimitKnown && QueueWaits(l)
}

// Partial means that the connections that were counted are too few. They can show a
// limit reached, and never that there is room.
func Partial(l *model.Listener) bool {
	return l != nil && l.Connections != nil && l.Connections.Partial
}

// Inexact means that not each connection was counted. That there is room inside, or how many
// slots are held, is not proved by it.
func Inexact(l *model.Listener) bool {
	return l != nil && l.Connections != nil && !l.Connections.Exact()
}

// SlotsInUse is the number of connection slots in use.
func SlotsInUse(l *model.Listener) (int, bool) {
	if l == nil {
		return 0, false
	}
	return l.Taken()
}

// Phase is how many connections are in a phase.
func Phase(l *model.Listener, ph model.Phase) int {
	if l == nil || l.Connections == nil {
		return 0
	}
	return l.Connections.Phases[ph]
}

// Queued is the number of connections in the accept queue.
func Queued(l *model.Listener) int {
	if l == nil || l.AcceptQueue == nil {
		return 0
	}
	return l.AcceptQueue.Length
}

// QueueWaits reports whether anybody waits in the accept queue.
func QueueWaits(l *model.Listener) bool { return ClientsQueued(l) > 0 }

// ClientsQueued are the connections in the accept queue but for those of probes, which wait for nothing. Where none but
// these were found, one that has come since is likely to be another.
func ClientsQueued(l *model.Listener) int {
	if probes(l) > 0 && l.AcceptQueue.OldestClient == nil {
		return 0
	}
	return max(0, Queued(l)-probes(l))
}

// probes are those in the accept queue; in a full one they keep clients out, and count as all others do.
func probes(l *model.Listener) int {
	if l == nil || l.AcceptQueue == nil || QueueFull(l) {
		return 0
	}
	return l.AcceptQueue.Probes
}

// OldestWait is for how long the first of these has waited, nil where that is not known.
func OldestWait(l *model.Listener) *time.Duration {
	switch {
	case l == nil || l.AcceptQueue == nil:
		return nil
	case probes(l) > 0:
		return l.AcceptQueue.OldestClient
	}
	return l.AcceptQueue.OldestWait
}

// WaitsLong means that it has waited for that long.
func WaitsLong(l *model.Listener) bool {
	old := OldestWait(l)
	return old != nil && *old >= LongWaiting
}

// QueueFull reports whether the accept queue is full.
func QueueFull(l *model.Listener) bool {
	return l != nil && l.AcceptQueue != nil && l.AcceptQueue.Full()
}

// LongWaiting is how long clients wait for a server that has room for it to be neither a
// moment nor nothing.
const LongWaiting = time.Second

// UnreadLong means that a request has been there for that long of which nobody has read a byte.
func UnreadLong(l *model.Listener) bool {
	return l != nil && l.Connections != nil && l.Connections.Unread >= LongWaiting
}

// Repeating are connections on which much is sent again, where they are a quarter of all.
func Repeating(l *model.Listener) int {
	if l == nil || l.Connections == nil || l.Connections.Repeating < leftInsideLeast || 4*l.Connections.Repeating < l.Connections.Accepted {
		return 0
	}
	return l.Connections.Repeating
}

// Unacknowledged are connections whose clients acknowledge nothing that is sent to them, where
// they are a fifth of all at least; fewer are what networks lose.
func Unacknowledged(l *model.Listener) int {
	if l == nil || l.Connections == nil {
		return 0
	}
	n := l.Connections.Unacknowledged
	if n < unacknowledgedLeast || 5*n < l.Connections.Accepted {
		return 0
	}
	return n
}

// unacknowledgedLeast is of how many of them that is said.
const unacknowledgedLeast = 3

// Left are clients that closed while the server still had their requests, where they are a fifth of all but the idle at least:
// fewer are those of people who click again.
func Left(l *model.Listener) int {
	if l == nil || l.Connections == nil {
		return 0
	}
	c, n := l.Connections, l.Connections.Left
	if !IsTomcat(l) { // others may keep a connection that its client has closed, and have nothing of it, or read none for want of threads
		n -= min(n, c.ClosedIdle+c.Abandoned)
	}
	if n < leftInsideLeast || 5*n < c.Accepted-c.Phases[model.Idle] {
		return 0
	}
	return n
}

// leftInsideLeast is of how many of them that is said.
const leftInsideLeast = 3

// Forgotten are connections that the server has ended and something in between no longer knows, where they are a fifth of all
// that it ended: of these some hosts are gone, and have their address with others.
func Forgotten(l *model.Listener) int {
	if l == nil || l.Connections == nil {
		return 0
	}
	c := l.Connections
	if c.Forgotten < unacknowledgedLeast || 4*c.Forgotten < c.States["TIME_WAIT"]+c.States["FIN_WAIT2"] {
		return 0
	}
	return c.Forgotten
}

// GivenUp are the requests that wait and whose clients have closed, where that is most of
// them: the queue is then longer than the clients' patience, and room for more is room for more
// of these.
func GivenUp(l *model.Listener) int {
	if l == nil || l.Connections == nil {
		return 0
	}
	n := l.Connections.Abandoned
	if n < givenUpLeast || 2*n < WaitingRequests(l) {
		return 0
	}
	return n
}

// givenUpLeast is of how many of them that is said.
const givenUpLeast = 5

// SlotsOfLeft are the slots of clients that have closed and for which no thread can be at work:
// more than the pool has threads. Their requests were read, so that they are asynchronous ones
// that nobody completes.
func SlotsOfLeft(l *model.Listener) int {
	if l == nil || l.Connections == nil || l.Connector == nil || l.Connector.PoolThreads == nil || VirtualThreads(l) {
		return 0
	}
	read := LeftInService(l)
	if 2*read <= l.Connections.SlotsInUse() || read <= *l.Connector.PoolThreads {
		return 0
	}
	return read
}

// LeftInService are the clients that have closed, at their side at least, while their requests were in service.
func LeftInService(l *model.Listener) int {
	if l == nil || l.Connections == nil {
		return 0
	}
	return l.Connections.Phases[model.ClientClosed] - l.Connections.Abandoned - l.Connections.ClosedIdle
}

// PlausibleSomaxconn reports whether people set it to that: it may have been another one when the
// listener was opened. It is 128 before Linux 5.4 and 4096 since, and people set
// it to powers of two, to 65535, or to thousands; a queue of 9 is none of these.
func PlausibleSomaxconn(n int) bool {
	return n == 65535 || n >= 128 && n&(n-1) == 0 || n >= 1000 && n%1000 == 0
}

// AcceptCount is the configured one. Values ≤ 0 are ignored by Tomcat, and one
// read from the kernel is the limit in force itself.
func AcceptCount(l *model.Listener) (int, bool) {
	if l == nil || l.Connector == nil || l.Connector.AcceptCount == nil {
		return 0, false
	}
	s := l.Connector.AcceptCount
	return s.Value, s.Value > 0 && s.Kind != model.SourceKernel
}

// MostlyOutlived means that most of the connections that cannot be classified were answered, and
// are quiet for longer than keepAliveTimeout allows.
func MostlyOutlived(l *model.Listener) bool {
	return l.Connections != nil && 2*l.Connections.Outlived > Phase(l, model.Unclassified)
}

// MostlySilent means that most idle connections are such as have never had a request.
func MostlySilent(l *model.Listener) bool { return 2*Silent(l) > Phase(l, model.Idle) }

// MostlyRecent means that most idle connections were used within the last two seconds, so that on
// average they are used every four or more often: no timeout of some seconds ends them.
func MostlyRecent(l *model.Listener) bool {
	return l.Connections != nil && l.Connections.MostlyRecent()
}

// Silent is how many idle connections have never sent a byte.
func Silent(l *model.Listener) int {
	if l.Connections == nil {
		return 0
	}
	return l.Connections.Silent
}

// InHand are the requests that are seen to have come and not to be answered.
func InHand(l *model.Listener) int {
	return WaitingRequests(l) + Phase(l, model.InService) + Phase(l, model.Sending)
}

// Asked reports whether a client may have sent a request that is not answered.
func Asked(l *model.Listener) bool {
	return InHand(l)+Phase(l, model.Unclassified) > 0
}

// WaitingRequests are those that no thread has begun to read: of clients that
// are still there, and of those that gave up.
func WaitingRequests(l *model.Listener) int {
	if l == nil || l.Connections == nil {
		return 0
	}
	return l.Connections.Phases[model.Waiting] + l.Connections.Abandoned
}

// VirtualThreads reports whether requests are served by virtual threads.
func VirtualThreads(l *model.Listener) bool {
	return l != nil && l.OnVirtualThreads()
}

// IdleForMoments reports whether most connections are idle at the moment, and may be in service.
func IdleForMoments(l *model.Listener) bool {
	n, ok := SlotsInUse(l)
	return ok && model.MostlyIdle(Phase(l, model.Idle), n) && l.Connections.MostlyMaybeBusy()
}
