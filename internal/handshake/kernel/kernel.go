// Package kernel is what the kernel says beside the segments: the counters of a namespace, and the
// socket that it has for two ends.
package kernel

import "time"

// Counters are those of a namespace, since it was made.
type Counters struct {
	Sent    uint64 // segments (Tcp OutSegs)
	Drops   uint64 // SYNs and ACKs that a listener dropped (TcpExt ListenDrops)
	Cookies uint64 // SYNs that were answered with a cookie (TcpExt TCPReqQFullDoCookies)
	Repeats uint64 // repeated SYN-ACKs and SYNs (TcpExt TCPSynRetrans)
	Resets  uint64 // sent RSTs (Tcp OutRsts)
	Aborted uint64 // half-open connections that were reset (TcpExt EmbryonicRsts)
	Killed  uint64 // connections that either side reset (Tcp EstabResets)
	Opened  uint64 // connections that were let in (Tcp PassiveOpens)
}

// Count is the counters as they were read, between two moments: what happened meanwhile is
// in them or not.
type Count struct {
	Counters
	Began, Ended time.Duration
}

// Sub is what they have moved by since.
func (c Counters) Sub(before Counters) Counters {
	return Counters{
		Sent: c.Sent - before.Sent, Drops: c.Drops - before.Drops, Cookies: c.Cookies - before.Cookies,
		Repeats: c.Repeats - before.Repeats, Resets: c.Resets - before.Resets,
		Aborted: c.Aborted - before.Aborted, Killed: c.Killed - before.Killed, Opened: c.Opened - before.Opened,
	}
}

// Calm reports whether each SYN that came was answered by a SYN-ACK, once: of what can
// happen to it otherwise some counter would show it, unless netfilter dropped it.
func (c Counters) Calm() bool {
	return c.Drops == 0 && c.Cookies == 0 && c.Repeats == 0 && c.Resets == 0 && c.Aborted == 0
}

// CalmButStrayResets is calm, besides RSTs that no connection ended by: they answered a
// segment of no connection, or a SYN to a port without a listener.
func (c Counters) CalmButStrayResets() bool {
	if c.Killed == 0 {
		c.Resets = 0
	}
	return c.Calm()
}

// Socket is what the kernel has for the two ends of an attempt.
type Socket uint8

const (
	// SocketUnknown says that it cannot be asked.
	SocketUnknown Socket = iota
	// NoSocket says that there is none, and no listener either.
	NoSocket
	// OnlyListener says that no socket is the client's.
	OnlyListener
	// HalfOpenSocket waits for the client's ACK (SYN_RECV).
	HalfOpenSocket
	// Connection includes closing ones, but not TIME_WAIT, which may be of one before.
	Connection
)

// Found is what the kernel has for the two ends of an attempt, and of a Connection what
// came and went by it.
type Found struct {
	Socket
	HasInfo        bool          // what follows is known
	Sent, Received uint64        // bytes of data, of the server and of the client
	Quiet          time.Duration // since the server last sent data, or since the socket was made (tcpi_last_data_sent)
	ByBareACK      bool          // it was made by a segment without data, the client's answer to a SYN-ACK
	Unheard        time.Duration // since an open connection that has read all took a segment of the client (tcpi_last_ack_recv); 0 of another
	Segments       uint32        // that have come to the socket, whatever became of them (tcpi_segs_in)
	Client         Client
}

// Client is what is known of the client's own socket, as on the loopback.
type Client uint8

const (
	// ClientUnknown says that there is none, or of no use here.
	ClientUnknown Client = iota
	// ClientThere says that it is open.
	ClientThere
	// ClientShut says that its process has shut down its side, and has it still (FIN_WAIT1, FIN_WAIT2).
	ClientShut
	// ClientLeft says that its process has closed it, and the server does not know yet (FIN_WAIT1).
	ClientLeft
)
