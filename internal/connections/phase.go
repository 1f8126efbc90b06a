// Package connections says of decoded sockets what they mean: which listener a
// connection belongs to, in which phase it is, what waits in the accept queue,
// and which clients gave up. It is pure: it asks no kernel and knows no clock.
package connections

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// PhaseOf is the phase of an accepted connection, from its two queues and
// tcp_info's ages (whole jiffies; smaller is later). s is ESTABLISHED or
// CLOSE_WAIT and has an inode.
func PhaseOf(s *sockdiag.Socket) model.Phase {
	switch {
	case s.State == sockdiag.CloseWait:
		return model.ClientClosed
	case s.RecvQ > 0:
		if beingRead(s) {
			return model.InService
		}
		return model.Waiting
	case s.SendQ > 0:
		return model.Sending
	case !s.HasInfo:
		return model.Unclassified
	}
	if streaming(&s.Info) {
		return model.Streaming
	}
	return byAges(&s.Info)
}

// A streamed response lasts for at least this long, in at least this many
// segments more than came, of at most this many bytes on average.
const (
	streamFor      = time.Second
	streamSegments = 3
	streamBytes    = 1024
)

// streaming distinguishes server-sent events, or what a server pushes over a WebSocket,
// from a response that was sent once: the server has continued to send for longer
// after the client's last data than it is quiet now, in many small segments
// (tcpi_data_segs_out, tcpi_bytes_acked). A stream that is quiet for longer looks
// like an idle connection.
func streaming(i *sockdiag.TCPInfo) bool {
	return manyPieces(i) && i.LastDataRecv-i.LastDataSent >= max(streamFor, i.LastDataSent)
}

// manyPieces: more segments were sent than came, and small ones.
func manyPieces(i *sockdiag.TCPInfo) bool {
	return i.HasDataSegs() && !silent(i) && i.DataSegsOut >= i.DataSegsIn+streamSegments && i.BytesAcked <= streamBytes*uint64(i.DataSegsOut)
}

// beingRead distinguishes a request whose first bytes a worker has already read, an
// upload, from one that nobody has touched. It is certain only on a
// connection's first request: nothing was sent yet, and fewer bytes wait than
// came (tcpi_bytes_received).
func beingRead(s *sockdiag.Socket) bool {
	return s.HasInfo && nothingSent(&s.Info) && s.Info.BytesReceived > uint64(s.RecvQ)
}

// lingerAge is how long a request may lie unread before an idle worker would
// surely have come: Tomcat's poller hands it over within a millisecond or so. Bytes of a
// connection's later request that lie there for longer, lingering, are a request that
// nobody has touched, or a body that its handler does not read: the byte counts cannot
// distinguish them.
const lingerAge = 50 * time.Millisecond

// attend moves lingering connections to InService, at most as many as there are workers
// that nothing else accounts for: an idle one would have taken a request that
// nobody has touched, so those workers have come, and do not read the body.
func attend(c *model.Connections, lingering int, connector *model.Connector) {
	if lingering == 0 || connector == nil || connector.TLS || connector.HTTP2 {
		return
	}
	if connector.PoolThreads == nil && !connector.OnVirtualThreads() {
		return
	}
	n := min(lingering, freeWorkers(c, lingering, connector))
	c.Phases[model.Waiting] -= n
	c.Phases[model.InService] += n
}

// freeWorkers are those that nothing else accounts for; as many as are asked for where there is no limit of them, or
// their number is not known.
func freeWorkers(c *model.Connections, asked int, connector *model.Connector) int {
	if connector.PoolThreads == nil || connector.OnVirtualThreads() {
		return asked
	}
	served := c.Phases[model.ClientClosed] - c.Abandoned - c.ClosedIdle
	return max(0, *connector.PoolThreads-c.Phases[model.InService]-c.Phases[model.Sending]-served)
}

// stillOpen: a connection was closed by its client some time ago, and a later request may have come in the jiffy of the
// response before it, whose segments were several (see maybeBusy). The FIN was the last that came.
func stillOpen(s *sockdiag.Socket) bool {
	i := &s.Info
	return s.HasInfo && !nothingSent(i) && s.RecvQ <= 1 && i.LastDataRecv == i.LastDataSent && i.LastAckRecv >= lingerAge
}

// holdOpen takes such connections for requests in service, as many as there are workers for: an idle one would have
// read the FIN of a connection that is idle, and closed it (NioEndpoint.Poller).
func holdOpen(c *model.Connections, unclosed int, connector *model.Connector) {
	if unclosed > 0 && connector != nil && !connector.TLS && !connector.HTTP2 {
		c.ClosedIdle -= min(unclosed, c.ClosedIdle, freeWorkers(c, unclosed, connector))
	}
}

// byAges distinguishes a busy connection from an idle one when both queues are empty.
func byAges(i *sockdiag.TCPInfo) model.Phase {
	switch {
	case silent(i):
		return model.Idle
	case nothingSent(i) || i.LastDataRecv < i.LastDataSent:
		return model.InService
	case i.LastDataRecv > i.LastDataSent:
		return model.Idle
	case i.LastAckRecv < i.LastDataRecv || i.DataSegsIn <= i.DataSegsOut:
		// A tie: request and response within one jiffy. A pure ACK that came
		// later acknowledges the response; and one segment out for each one in
		// means that every request was answered.
		return model.Idle
	}
	return model.InService
}

// maybeBusy: an idle connection may be in service, as its server has sent lately: a response
// that comes in pieces looks idle between two of them, as long as it has lasted for longer
// than it is quiet now. So does a request that came as soon as the response before it, whose
// segments were several: of a tie only a later pure ACK, or as many segments out as in, show
// that it was answered.
func maybeBusy(i *sockdiag.TCPInfo) bool {
	if min(i.LastDataSent, i.LastDataRecv) >= quietStep {
		return false
	}
	if i.LastDataRecv > i.LastDataSent {
		return i.LastDataRecv-i.LastDataSent > i.LastDataSent
	}
	return i.LastAckRecv >= i.LastDataRecv && i.DataSegsIn < i.DataSegsOut
}

// silent: no byte has come yet (tcpi_bytes_received).
func silent(i *sockdiag.TCPInfo) bool { return i.BytesReceived == 0 }

// nothingSent: no data segment has left yet (tcpi_data_segs_out). Without data,
// last_data_sent is the time of the handshake and says nothing.
func nothingSent(i *sockdiag.TCPInfo) bool { return i.DataSegsOut == 0 }

// unclassify moves what the kernel cannot distinguish to Unclassified: when the bytes are not requests (TLS, HTTP/2)
// all of idle and in service but those who have sent no byte, as the client speaks first there, too; and what
// is in service beyond the pool's threads: half-sent headers, async servlets.
func unclassify(c *model.Connections, connector *model.Connector) {
	if connector == nil {
		return
	}
	move := func(from model.Phase, n int) {
		c.Phases[from] -= n
		c.Phases[model.Unclassified] += n
	}
	if connector.TLS || connector.HTTP2 {
		move(model.InService, c.Phases[model.InService])
		move(model.Idle, c.Phases[model.Idle]-c.Silent)
		move(model.Streaming, c.Phases[model.Streaming])
		c.Recent, c.MaybeBusy = 0, 0
		return
	}
	virtual := connector.VirtualThreads != nil && connector.VirtualThreads.Value
	if threads := connector.PoolThreads; threads != nil && !virtual {
		move(model.InService, max(0, c.Phases[model.InService]-*threads))
	}
}
