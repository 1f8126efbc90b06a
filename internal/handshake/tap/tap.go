// Package tap reads the handshakes of a network namespace from the kernel (packet(7)): incoming
// SYNs and RSTs, outgoing SYN-ACKs and RSTs, of the watched ports only, cut off behind the TCP
// header, and a ClientHello behind its first byte. A handshake.Tracker judges them.
//
// A Tap drains its ring (ring, ready) at its pace, gives it the size that it needs (fit), tells
// the Tracker what the namespace's counters show (trouble), and leaves out what is sent while
// they show that nobody is in trouble (oneway).
package tap

import (
	"errors"
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/handshake"
	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
)

// Options are what a Tap follows, and what it asks about its namespace.
type Options struct {
	handshake.Options
	Ports []uint16
	// Counters are the namespace's. With them, and with Options.Socket, outgoing packets
	// are not read while many are sent and no client is in trouble.
	Counters func() (kernel.Counters, error)
	// Trouble is read while an attempt is open. Without it a SYN cookie is taken for an
	// ordinary SYN-ACK, and no ACK for dropped.
	Trouble func() (Trouble, error)
	// Dropped are the packets that the listeners of each port have dropped (sk_drops), read
	// when Trouble.Drops has moved. Without it each may have been any listener's.
	Dropped func() (map[uint16]uint64, error)
	// Addresses are the namespace's own. Without it the clients of an address that
	// the namespace only forwards to are counted as well.
	Addresses func() ([]netip.Prefix, error)
	// Inside runs a function in the namespace that is tapped. With it a ring of 64
	// KiB gives way to one of a megabyte while many packets come; without it the
	// ring is the large one from the start.
	Inside func(func() error) error
	// Calm has outgoing packets not read from the start, and again as soon as nothing
	// happens any more, however few are sent: for tests and measurements.
	Calm bool
}

// Trouble counts what happens to clients that are not simply let in.
type Trouble struct {
	Cookies uint64 // SYNs that were answered with a cookie (TcpExt TCPReqQFullDoCookies)
	Drops   uint64 // SYNs and ACKs that a listener dropped (TcpExt ListenDrops)
}

// Report is what a Tap has counted since it was opened.
type Report struct {
	Endpoints []outcome.Endpoint // that have had a client, by port and address
	// Lost packets found no room in the ring: outcomes may be wrong by as many.
	Lost uint64
	// Ignored packets were none that the kernel's TCP takes: see Decode's errors.
	Ignored uint64
	// Opened are the sockets that the namespace made for clients since the tap was opened
	// (Tcp PassiveOpens), read after the packets; nil where they cannot be.
	Opened *uint64
	// OneWay: outgoing packets are not read at the moment, as no client is in trouble.
	OneWay bool
}

var (
	// ErrClosed is what a closed Tap answers.
	ErrClosed = errors.New("tap: closed")
	// ErrNotSupported is what Open answers on systems other than Linux.
	ErrNotSupported = errors.New("tap: not supported on this system")
)
