package model

import (
	"net/netip"
	"time"
)

// Phase is the state of an accepted connection, from what the kernel reports alone.
type Phase int

// The phases; every accepted connection is in exactly one.
const (
	Waiting      Phase = iota // request bytes that nobody has read; no worker thread has come
	InService                 // a request has been read and not yet answered
	Sending                   // response bytes the client has not acknowledged
	Idle                      // keep-alive, or nothing received yet
	ClientClosed              // the client sent FIN: it gave up, or only half-closed
	Streaming                 // the server keeps sending, the client has long been silent: server-sent events and the like
	Unclassified              // TLS, HTTP/2, or more in service than there are threads
	NumPhases
)

// String is the phase's name in JSON and in the metrics' phase label.
func (p Phase) String() string {
	return [NumPhases]string{"waiting", "in_service", "sending", "idle", "client_closed", "streaming", "unclassified"}[p]
}

// Connections are the accepted connections of a listener: ESTABLISHED and
// CLOSE_WAIT sockets with an inode.
type Connections struct {
	At       time.Time      // when they were read
	Age      time.Duration  // since then, as of the snapshot; known where At is
	Accepted int            // sum of Phases
	Phases   [NumPhases]int // indexed by Phase
	// Reset are descriptors of the process whose socket the kernel has already
	// forgotten, as after the client's reset, when Tomcat still holds the slot:
	// at most as many as it has slots. Which port they belonged to is not known;
	// the process's outgoing connections leave such descriptors, too. nil when
	// they were not counted or could not be.
	Reset *int
	// Abandoned of the ClientClosed had request bytes that nobody has read.
	Abandoned int
	// ClosedIdle of the ClientClosed had nothing in hand: a keep-alive connection
	// that was idle, or a probe that asked nothing.
	ClosedIdle int
	// Left of the ClientClosed have been that for half a second and more, the first for LeftFor at least: the poller closes an idle
	// connection as soon as its client's FIN comes, so the server still has their requests. Streams are not among them, of
	// which it does not read until it sends the next time.
	Left    int
	LeftFor time.Duration
	// Silent of the Idle have sent nothing since they were connected, a second ago and more
	// (tcpi_bytes_received 0): Tomcat's connectionTimeout ends these, its
	// keepAliveTimeout those that have had a response.
	Silent int
	// Recent of the Idle have had data in either direction within the last two seconds:
	// clients that ask again and again, streams, or WebSockets that talk.
	Recent int
	// MaybeBusy of the Idle have been used within the last two seconds, and may be in
	// service: between two pieces of a response, or by a tie of request and response; or they have
	// been connected within the last second, and their first request is on the way.
	MaybeBusy int
	// Outlived of the Unclassified were answered, and have been quiet for longer than
	// keepAliveTimeout lets a connection wait for its next request: upgraded ones
	// (WebSockets) or asynchronous ones, whose server has its own timeouts for them.
	Outlived int
	// Unacknowledged of the Sending have had the same bytes repeated twice and more
	// (tcpi_retransmits), and nothing has come back: clients whose host or network is gone, or
	// which packets of full size do not reach.
	Unacknowledged int
	// Repeating of the Accepted have had 3 % and more of what was sent on them sent again (tcpi_bytes_retrans, of all their
	// time), and are no connection of the Unacknowledged.
	Repeating int
	// Forgotten are connections that the server has ended, and whose FIN nothing acknowledges for seconds (FIN_WAIT1), at
	// addresses from which other connections are heard of meanwhile. They are not among the Accepted.
	Forgotten int
	// LocalTrying are clients of the listener's own network namespace, as a proxy beside it, whose SYN has no answer: their
	// first for half a second, or one that they repeated. The latest was sent within TriedWithin. Known of the readings
	// that search for outgoing connections, and of a snapshot's last.
	LocalTrying int
	// Unread is for how long the oldest of the Waiting has been there of which nobody has
	// read a byte, as is known of the first requests of connections; UnreadNext the same of
	// later ones, of which the head may have been read and the body not.
	Unread, UnreadNext time.Duration
	// InServiceFor is for how long the oldest of the InService has been that, at least.
	InServiceFor time.Duration
	// TopPeer is the one address that more than half of the accepted connections
	// come from, nil where there is none.
	TopPeer *PeerCount
	// TopPeers are the five addresses that most of them come from.
	TopPeers []PeerCount
	// States are sockets by TCP state, the kernel's names (ESTABLISHED, CLOSE_WAIT,
	// …). More than a thousand in TIME_WAIT are counted every half a minute only.
	States map[string]int
	// Partial is set when the walk of the socket table was cut short every
	// time it was tried; the counts are then too low, and what else a walk finds
	// (SynBacklog, OldestWait, the ratios of Limits) is left out.
	Partial bool
	// Other is the process that holds connections of the port without listening there, as a
	// server does that is shutting down: they are in no other number. nil where none is known to.
	Other *OtherProcess
	// Subset is how many connections were asked for where that is a random part of them.
	// The counts are then estimates of all, each at most Error from the truth in 99 of 100
	// readings; connections that have come since the latest walk are within it.
	Subset, Error int
}

// TriedWithin is how long before a reading the latest SYN of the LocalTrying was sent at most, so that the shortest interval of a
// snapshot says whether the listener dropped it.
const TriedWithin = 900 * time.Millisecond

// OtherProcess holds connections of a port that it does not listen on.
type OtherProcess struct {
	PID         int
	Comm        string
	Connections int
}

// Exact reports whether each connection was counted.
func (c *Connections) Exact() bool { return !c.Partial && c.Subset == 0 }

// PeerCount is an address and how many connections at least come from it.
type PeerCount struct {
	Address     netip.Addr
	Connections int
}

// SlotsInUse is the number of Tomcat's connection slots in use that the kernel
// and the process's descriptors show: accepted + reset.
func (c *Connections) SlotsInUse() int {
	if c.Reset == nil {
		return c.Accepted
	}
	return c.Accepted + *c.Reset
}

// Taken are the connections that a listener holds. While clients come and go the kernel's
// table is read over some milliseconds, and a connection that ends is counted beside the one
// that takes its place: a few more than there can be are as many as there can be.
func (l *Listener) Taken() (n int, known bool) {
	if l.Connections == nil {
		return 0, false
	}
	n = l.Connections.SlotsInUse()
	if k := l.Connector; k != nil && k.MaxConnections != nil {
		if most := k.MaxConnections.Value; most > 0 && n > most && n <= most+most/10+1 {
			n = most
		}
	}
	return n, true
}

const (
	// connectionsSlack is the share of maxConnections that may be missing from the
	// kernel's count of a server at its limit: a walk of the socket table is not one
	// instant, and Tomcat frees a slot only after the socket is closed. One connection
	// may be missing from slackFrom on.
	connectionsSlack = .02
	slackFrom        = 8
	// idleMajority is the share of connections that must be idle to be the cause.
	idleMajority = .5
	// filesFull is the share of the file limit that counts as reached: Tomcat frees
	// and takes descriptors while accept() fails with EMFILE.
	filesFull = .98
)

// ConnectionsReached is the number of connections from which a server counts as one
// that holds its maxConnections.
func ConnectionsReached(most int) int {
	missing := int(float64(most) * connectionsSlack)
	if most >= slackFrom {
		missing = max(missing, 1)
	}
	return most - missing
}

// MostlyIdle reports whether most of the connections that are held are idle.
func MostlyIdle(idle, slots int) bool { return float64(idle) > idleMajority*float64(slots) }

// MostlyRecent reports whether most idle connections were used within the last two
// seconds: on average a client asks again that soon.
func (c *Connections) MostlyRecent() bool { return 2*c.Recent > c.Phases[Idle] }

// Answered are those of the Accepted that the server is known to have sent something.
func (c *Connections) Answered() int {
	return c.Phases[Sending] + c.Phases[Streaming] + max(0, c.Phases[Idle]-c.Silent-c.MaybeBusy)
}

// MostlyMaybeBusy reports whether most idle connections may be in service.
func (c *Connections) MostlyMaybeBusy() bool { return 2*c.MaybeBusy > c.Phases[Idle] }

// Unused are the idle connections; 0 where most of them may be in service.
func (c *Connections) Unused() int {
	if c.MostlyMaybeBusy() {
		return 0
	}
	return c.Phases[Idle]
}

// FilesReached reports whether a process has nearly as many files open as it may:
// accept() may find no descriptor.
func FilesReached(used, most int) bool { return float64(used) >= filesFull*float64(most) }
