package model

import (
	"net/netip"
	"time"
)

// Downstream are the outgoing connections of a process, by the peer that they
// lead to: what its threads wait for.
type Downstream struct {
	At    time.Time     // when they were read
	Age   time.Duration // since then, as of the snapshot
	Peers []Peer        // those with most in flight first, bounded
	// Others are the peers beyond the bound, summed; nil where there are none.
	Others *Peer
	// ByUser: the process's descriptors could not be read; these are the
	// connections of its user in its namespace.
	ByUser bool
	// Partial: there were more connections than are counted.
	Partial bool
	// Unconnected are the servers for which the configuration has a pool and to which
	// no connection is open. None where not all connections are known.
	Unconnected []Backend
	// Workers is what the connectors' threads were doing at that moment, nil where
	// they were not read: without trouble, or where that is not permitted.
	Workers *Workers
}

// Workers are a process's worker threads by the system call that each was in
// (task/TID/syscall). Those that wait for a peer are the peers' Workers.
type Workers struct {
	Threads int // that were read
	Running int // on a CPU, or waiting for one
	// Parked wait in a futex: idle ones for a request, others for a lock, a pool or
	// a timer. The kernel shows the same of all of these.
	Parked int
	// Timed of the parked wait no longer than a timeout: for a timer, or for a pool
	// that gives up. A lock, and what another thread is to hand over, have none.
	Timed int
	// These are in a call on what is no socket: a file, a pipe. On a file system that
	// answers, nobody is seen there. They are in open(2), in write(2), in read(2), wait for the lock of a
	// file, are in fsync(2), in stat(2).
	Opening, Writing, ReadingFile, Locking, Syncing, Stating int
	// These wait for an answer on a socket that is not TCP's: a datagram, as of a name server,
	// or what a process of this machine sends on a socket of the Unix domain.
	ReceivingUDP, ReceivingUnix int
	// UDPPeer is where the answers of most that wait for UDP are to come from; not valid where
	// none of their sockets is connected.
	UDPPeer netip.AddrPort
	// PollerBlocked: the thread that hands requests to the others is itself in a call that is not
	// for them: it waits for a lock or a timer, as a worker does.
	PollerBlocked bool
	// PollerAway: the kernel shows that it waits so by itself: with a timeout, or for a peer's answer. What has no timeout
	// may be a lock, a debugger's suspension, or a safepoint.
	PollerAway bool
	// Other are in another call: they read from the client, from a file.
	Other int
}

// Locked is how many of a listener's busy threads wait for a lock, a pool or a
// timer: those that neither run nor wait for a peer or a client. It is 0 where the busy ones
// cannot be counted, and no more than are parked.
func (d *Downstream) Locked(l *Listener) int {
	busy, known := l.BusyThreads()
	if d.Workers == nil || known != BusyIsKnown {
		return 0
	}
	busy -= d.Workers.Running + d.Workers.Other + d.Workers.InCalls() + d.ForClients(l)
	for i := range d.Peers {
		if n := d.Peers[i].Workers; n != nil {
			busy -= *n
		}
	}
	return max(0, min(busy, d.Workers.Parked))
}

// ForClients is how many of them wait for clients to take their responses: Tomcat parks a thread that sends until
// its poller finds room (NioEndpoint.NioSocketWrapper.doWrite).
func (d *Downstream) ForClients(l *Listener) int {
	if d.Workers == nil {
		return 0
	}
	return min(l.SendingThreads(), d.Workers.Parked)
}

// Peer is one address that a process has connections to.
type Peer struct {
	Address netip.AddrPort
	Name    string // what the configuration calls it: the database in its URL, "redis"; "" where it does not
	// ByPort: that the configuration means this peer is concluded from the port
	// alone, as the host it names is known to DNS only.
	ByPort bool

	Connections int // ESTABLISHED, and those that connect
	InFlight    int // a request was sent, and nothing has come back since
	Unknown     int // may be in flight or not: see InFlightError
	Connecting  int // SYN_SENT: nobody has answered yet
	// Oldest is the age of the oldest request in flight, OldestConnect of the
	// oldest SYN that nobody has answered (a lower bound).
	Oldest, OldestConnect time.Duration
	// Mean is the mean age of the requests in flight. With requests that all
	// take the same time it is half of that.
	Mean time.Duration
	// AllInFlight is the share of the readings of the last minute in which every
	// connection there was in flight; nil with a single reading.
	AllInFlight *float64
	// AllInRow is in how many of the latest readings, without a gap, they were.
	AllInRow int
	// PerSecond is how many requests a second were begun there, in those readings
	// where there are two, else in the last minute: a lower bound, since a reading
	// sees at most one a connection. It is exact where requests take longer than
	// the time between two readings.
	PerSecond *float64
	// Background of those in flight are so while nobody is served: long polls and
	// subscriptions. nil where the process was not seen at rest.
	Background *int
	// Workers is how many of the connector's threads are in a call that waits for
	// one of these connections; nil where that was not read.
	Workers *int
	// Pool is the bound that the application's configuration sets on the
	// connections, nil where it names none.
	Pool *Pool
}

// Waiting is how many of those in flight, or connecting, requests of clients can
// account for.
func (p *Peer) Waiting() int {
	n := p.InFlight + p.Connecting
	if p.Background != nil {
		n -= min(n, *p.Background)
	}
	return n
}

// Pool is a configured bound on the connections to one peer.
type Pool struct {
	Library string // "HikariCP", "tomcat-jdbc", …
	Setting string // the property that sets Size: "spring.datasource.hikari.maximum-pool-size"
	Size    Setting[int]
}

// GivesUp means that who waits for one of its connections always does so with a timeout, on the thread that uses it.
func (p *Pool) GivesUp() bool { return p.Library == "HikariCP" || p.Library == "tomcat-jdbc" }

// Backend is a server that the application's configuration names. Of the URL there
// nothing is kept but where it leads and the name of the database.
type Backend struct {
	Name string           // the database, or the product: "orders", "redis"
	At   []netip.AddrPort // where the configuration or the process's hosts file gives the address
	// Ports are those of the hosts whose address only DNS knows, which is not asked.
	Ports []uint16
	Pool  *Pool // nil where the size of none is known
}
