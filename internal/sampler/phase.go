package sampler

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// phaseOf tells where an accepted connection stands, from its two queues and
// tcp_info's ages (whole jiffies; smaller is later). s is ESTABLISHED or
// CLOSE_WAIT and has an inode.
func phaseOf(s *sockdiag.Socket) backlog.Phase {
	switch {
	case s.State == sockdiag.CloseWait:
		return backlog.ClientClosed
	case s.RecvQ > 0:
		if beingRead(s) {
			return backlog.InService
		}
		return backlog.Waiting
	case s.SendQ > 0:
		return backlog.Sending
	case !s.HasInfo:
		return backlog.Unclassified
	}
	return byAges(&s.Info)
}

// beingRead tells a request whose first bytes a worker has already read, an
// upload, from one that nobody has touched. It is certain only on a
// connection's first request: nothing was sent yet, and fewer bytes wait than
// came (tcpi_bytes_received).
func beingRead(s *sockdiag.Socket) bool {
	return s.HasInfo && nothingSent(&s.Info) && s.Info.BytesReceived > uint64(s.RecvQ)
}

// lingerAge is how long a request may lie unread before an idle worker would
// surely have come: Tomcat's poller hands it over within a millisecond or so.
const lingerAge = 50 * time.Millisecond

// lingers is true for unread bytes of a later request on a connection, which
// have lain there for a while: a request that nobody has touched, or a body
// that its handler does not read. The byte counts cannot tell them apart.
func lingers(s *sockdiag.Socket) bool {
	return s.HasInfo && !nothingSent(&s.Info) && s.Info.LastDataRecv >= lingerAge
}

// attend moves lingering connections to InService as far as there are workers
// that nothing else accounts for: an idle one would have taken a request that
// nobody has touched, so those workers have come, and do not read the body.
func attend(c *backlog.Connections, lingering int, connector *backlog.Connector) {
	if lingering == 0 || connector == nil || connector.TLS || connector.HTTP2 {
		return
	}
	free := lingering // with virtual threads nobody waits for a worker
	if connector.VirtualThreads == nil || !connector.VirtualThreads.Value {
		if connector.PoolThreads == nil {
			return
		}
		served := c.Phases[backlog.ClientClosed] - c.Abandoned
		free = *connector.PoolThreads - c.Phases[backlog.InService] - c.Phases[backlog.Sending] - served
	}
	n := max(0, min(lingering, free))
	c.Phases[backlog.Waiting] -= n
	c.Phases[backlog.InService] += n
}

// byAges tells a busy connection from an idle one when both queues are empty.
func byAges(i *sockdiag.TCPInfo) backlog.Phase {
	switch {
	case silent(i):
		return backlog.Idle
	case nothingSent(i) || i.LastDataRecv < i.LastDataSent:
		return backlog.InService
	case i.LastDataRecv > i.LastDataSent:
		return backlog.Idle
	case i.LastAckRecv < i.LastDataRecv || i.DataSegsIn <= i.DataSegsOut:
		// A tie: request and response within one jiffy. A pure ACK that came
		// later acknowledges the response; and one segment out for each one in
		// means that every request was answered.
		return backlog.Idle
	}
	return backlog.InService
}

// silent: no byte has come yet (tcpi_bytes_received).
func silent(i *sockdiag.TCPInfo) bool { return i.BytesReceived == 0 }

// nothingSent: no data segment has left yet (tcpi_data_segs_out). Without data,
// last_data_sent is the time of the handshake and says nothing.
func nothingSent(i *sockdiag.TCPInfo) bool { return i.DataSegsOut == 0 }

// unclassify moves what the kernel cannot tell apart to Unclassified: all of
// idle and in service when the bytes are not requests (TLS, HTTP/2), and what
// is in service beyond the pool's threads: half-sent headers, async servlets.
func unclassify(c *backlog.Connections, connector *backlog.Connector) {
	if connector == nil {
		return
	}
	move := func(from backlog.Phase, n int) {
		c.Phases[from] -= n
		c.Phases[backlog.Unclassified] += n
	}
	if connector.TLS || connector.HTTP2 {
		move(backlog.InService, c.Phases[backlog.InService])
		move(backlog.Idle, c.Phases[backlog.Idle])
		c.Silent = 0
		return
	}
	virtual := connector.VirtualThreads != nil && connector.VirtualThreads.Value
	if threads := connector.PoolThreads; threads != nil && !virtual {
		move(backlog.InService, max(0, c.Phases[backlog.InService]-*threads))
	}
}
