// Package hello finds clients that begin a TLS handshake, have an answer of the server, and end the connection before their
// part of the handshake is done. It is pure, and reads no record: it knows where a ClientHello ends, and where a client's FIN stands.
package hello

import (
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/counts"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/shares"
)

const (
	// longest and padded are what a client that fails sends behind its ClientHello: nothing, an alert, or a ChangeCipherSpec of 6 bytes
	// and an encrypted alert of 24 (RFC 8446, 6 and D.4), which the JDK makes 40. Less than one that is done: a ChangeCipherSpec and a
	// Finished are 43 bytes and more (TLS 1.2, of a session that is resumed), a Finished of TLS 1.3 is of 58.
	longest = 40
	padded  = 46
	// within is how soon its end follows: later the server's timeout may have been first.
	within = 10 * time.Second
	// parts and most bound the ClientHellos that are remembered: a client has its place in one of the parts, whichever it is.
	parts = 16
	most  = 64
)

// Clients counts them. It is not safe for concurrent use.
type Clients struct {
	seed   maphash.Seed // of the parts, which nobody can foresee
	parts  *[parts]shares.Slots[hello]
	counts counts.Clients
	begun  counts.Clients // all that were seen to begin
}

// hello is a ClientHello: where it ends, and what of the server it acknowledges.
type hello struct {
	end, acked uint32
	at         time.Duration
}

// Observe takes in a segment to or from a port that is followed.
func (c *Clients) Observe(at time.Duration, s *packet.Segment, follows func(port uint16) bool) {
	ends := s.Flags&(packet.FlagFIN|packet.FlagRST) != 0 && c.parts != nil
	if !s.Incoming || !ends && !s.Hello || s.Flags&packet.FlagSYN != 0 || !follows(s.DstPort) {
		return
	}
	if c.parts == nil {
		c.seed, c.parts = maphash.MakeSeed(), new([parts]shares.Slots[hello])
	}
	e := shares.ToServer(s)
	part := &c.parts[maphash.Comparable(c.seed, e)%parts]
	h := part.Find(&e)
	switch {
	case !s.Hello:
		if h != nil && at-h.at <= within && h.fails(s) {
			part.Forget(&e)
			c.counts.Add(e.Server.Netip())
		}
	case h != nil:
		*h = begun(at, s)
	default:
		part.Add(&e, begun(at, s), most, ^uint64(at)) // the oldest goes
		c.begun.Add(e.Server.Netip())
	}
}

func begun(at time.Duration, s *packet.Segment) hello {
	return hello{s.Seq + uint32(s.Payload), s.Ack, at}
}

// fails reports whether a client that ends its connection has an answer, and has sent no Finished. Another client's numbers are others.
func (h *hello) fails(s *packet.Segment) bool {
	sent, got := s.Seq+uint32(s.Payload)-h.end, s.Ack-h.acked
	return (sent <= longest || sent == padded) && got > outcome.AlertLength+1 && got < 1<<16
}

// Of is how many there were at an address that is followed. After the last report of one its count begins again.
func (c *Clients) Of(server netip.AddrPort, last bool) uint64 { return c.counts.Of(server, last) }

// Begun is how many of all clients were seen to begin a TLS handshake there, likewise.
func (c *Clients) Begun(server netip.AddrPort, last bool) uint64 { return c.begun.Of(server, last) }
