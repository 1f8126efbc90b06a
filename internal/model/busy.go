package model

import "time"

// BusyKnown says whether, and if not why not, the number of busy threads is known.
type BusyKnown int

// The reasons.
const (
	BusyIsKnown       BusyKnown = iota
	BusyNotRead                 // connections were not read
	BusyEncrypted               // TLS: requests are not visible on the connections
	BusyMultiplexed             // HTTP/2: many requests on one connection
	BusyBeyondThreads           // more connections are unanswered than there are threads
	BusyAfterResets             // clients reset: their threads still work, without a connection
	BusyShared                  // another connector of the same Executor does not show it
	BusyUnseen                  // more requests wait than threads seem free: something unseen has those
	BusyStreaming               // a streamed response, or a WebSocket, has a thread or not (asynchronous)
)

// BusyThreads is how many threads have a request in hand: Actuator's figure, or
// the connections that are being served, among them those whose client has
// closed meanwhile (the thread does not know). It is not known where the phases
// are not, where more connections are unanswered than there are threads (any of
// them may have none: half-sent requests, asynchronous handlers), where clients
// reset or must have done so, and where responses are streamed.
func (l *Listener) BusyThreads() (int, BusyKnown) {
	switch c := l.Connector; {
	case c == nil:
	case c.BusyThreads != nil:
		return *c.BusyThreads, BusyIsKnown
	case c.Shared != nil && c.Shared.Busy != nil:
		return *c.Shared.Busy, BusyIsKnown
	case c.Shared != nil:
		return 0, BusyShared
	case c.TLS, c.HTTP2:
		return l.busyByCalls()
	}
	n := l.Connections
	switch {
	case n == nil:
		return 0, BusyNotRead
	case n.Phases[Unclassified] > n.Outlived:
		return 0, BusyBeyondThreads
	case n.Reset != nil && *n.Reset > 0:
		return 0, BusyAfterResets
	case n.Phases[Streaming] > 0, n.Outlived > 0:
		return 0, BusyStreaming
	}
	busy := n.Phases[InService] + n.Phases[Sending] + max(0, n.Phases[ClientClosed]-n.Abandoned-n.ClosedIdle)
	if l.NoneIdle() {
		return *l.Connector.PoolThreads, BusyIsKnown
	}
	switch {
	case l.Connector.fewerThan(busy), l.Connector.outnumberedBy(n):
		return 0, BusyBeyondThreads
	case l.Connector.outrunBy(n.Phases[Waiting]+n.Abandoned, busy):
		return 0, BusyUnseen
	}
	return busy, BusyIsKnown
}

// SendingThreads is how many busy threads are at most accounted for by responses that wait for their clients. A
// connection may have such bytes and no thread any more, so those that are in service come first.
func (l *Listener) SendingThreads() int {
	busy, known := l.BusyThreads()
	if known != BusyIsKnown || l.Connections == nil || l.Connector == nil {
		return 0
	}
	if most := l.Connector.MaxThreads; most != nil && most.Value > 0 {
		busy = min(busy, most.Value)
	}
	return max(0, min(l.Connections.Phases[Sending], busy-l.Connections.Phases[InService]))
}

// NoneIdle means that no thread of the pool is idle, whatever the connections show, as behind an answer (an access log
// whose disk hangs) or by a client that has left: a request has been unread for a second, the thread that hands requests over
// does not wait for something itself, and hardly any worker waits with a timeout, as idle ones do of a pool that has more
// threads than it keeps (ThreadPoolExecutor.getTask).
func (l *Listener) NoneIdle() bool {
	c, n, p := l.Connector, l.Connections, l.Process
	if c == nil || n == nil || p == nil || p.Downstream == nil || p.Downstream.Workers == nil || c.PoolThreads == nil || c.MinSpareThreads == nil {
		return false
	}
	w, pool, spare := p.Downstream.Workers, *c.PoolThreads, c.MinSpareThreads.Value
	if n.Phases[Waiting] == 0 || n.Unread < time.Second || c.WithoutPoller || w.PollerBlocked || w.Threads != pool || spare < 1 || pool < 2*spare {
		return false
	}
	return idleTimed*w.Timed <= pool-spare
}

// idleTimed: of one in as many that wait with a timeout it may be a lock's.
const idleTimed = 5

// outrunBy: the pool, which no other connector uses, has all its threads, most of
// them seem free, and yet more requests wait than those could take. A free one takes
// a request within a millisecond, so they work on what is not seen: for clients that
// reset, which no look has counted or can. A few are free between two requests.
func (c *Connector) outrunBy(waiting, busy int) bool {
	if c == nil || c.Executor != "" || c.PoolThreads == nil || c.MaxThreads == nil || c.VirtualThreads != nil && c.VirtualThreads.Value {
		return false
	}
	most := c.MaxThreads.Value
	return *c.PoolThreads >= most && 2*busy < most && waiting > most-busy
}

// outnumberedBy: more requests whose clients have closed were read than the pool has threads:
// asynchronous ones, of which nobody knows how many have a thread.
func (c *Connector) outnumberedBy(n *Connections) bool {
	if c == nil || c.PoolThreads == nil || c.VirtualThreads != nil && c.VirtualThreads.Value {
		return false
	}
	return n.Phases[ClientClosed]-n.Abandoned-n.ClosedIdle > *c.PoolThreads
}

// fewerThan: neither the pool has, nor may it have, that many threads.
func (c *Connector) fewerThan(busy int) bool {
	if c == nil || c.PoolThreads == nil || c.VirtualThreads != nil && c.VirtualThreads.Value {
		return false
	}
	return busy > *c.PoolThreads && c.MaxThreads != nil && busy > c.MaxThreads.Value
}

// busyByCalls is known where every thread of the pool was seen in a call that an idle one is not in:
// it waits for a peer, runs, or is in a call on a file or another socket.
func (l *Listener) busyByCalls() (int, BusyKnown) {
	why := BusyMultiplexed
	if l.Connector.TLS {
		why = BusyEncrypted
	}
	if l.Connector.PoolThreads == nil || l.Process == nil || l.Process.Downstream == nil || l.Process.Downstream.Workers == nil {
		return 0, why
	}
	d := l.Process.Downstream
	busy := d.Workers.Running + d.Workers.InCalls()
	for i := range d.Peers {
		if n := d.Peers[i].Workers; n != nil {
			busy += *n
		}
	}
	if pool := *l.Connector.PoolThreads; pool > 0 && d.Workers.Threads == pool && busy >= pool {
		return pool, BusyIsKnown
	}
	return 0, why
}
