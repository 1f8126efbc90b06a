// Package hello finds clients that begin a TLS handshake, have an answer of the server, and end the connection before their
// part of the handshake is done. It is pure, and reads no record: it knows where a ClientHello ends, and where a client's FIN stands.
package hello

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

const (
	// longest and padded are what a client that fails sends behind its ClientHello: nothing, an alert, or a ChangeCipherSpec of 6 bytes
	// and an encrypted alert of 24 (RFC 8446, 6 and D.4), which the JDK makes 40. Less than one that is done: a ChangeCipherSpec and a
	// Finished are 43 bytes and more (TLS 1.2, of a session that is resumed), a Finished of TLS 1.3 is of 58.
	longest = 40
	padded  = 46
	// within is how soon its end follows: later the server's timeout may have been first.
	within = 10 * time.Second
	// mostOpen bounds the ClientHellos that are remembered, mostServers the addresses.
	mostOpen    = 1024
	mostServers = 64
)

// Clients counts them. It is not safe for concurrent use.
type Clients struct {
	open   []hello
	counts map[netip.AddrPort]uint64 // by server
}

// hello is a ClientHello: where it ends, and what of the server it acknowledges.
type hello struct {
	end, acked uint32
	at         time.Duration
}

// Observe takes in a segment to or from a port that is followed.
func (c *Clients) Observe(at time.Duration, s *packet.Segment, follows func(port uint16) bool) {
	ends := s.Flags&(packet.FlagFIN|packet.FlagRST) != 0 && c.open != nil
	if !s.Incoming || !ends && !s.Hello || s.Flags&packet.FlagSYN != 0 || !follows(s.DstPort) {
		return
	}
	if c.open == nil {
		c.open = make([]hello, mostOpen)
	}
	h := &c.open[slot(s)]
	if s.Hello {
		*h = hello{s.Seq + uint32(s.Payload), s.Ack, max(at, 1)}
		return
	}
	if h.at == 0 || at-h.at > within || !h.fails(s) {
		return
	}
	*h = hello{}
	c.count(netip.AddrPortFrom(s.Dst.Netip(), s.DstPort))
}

// fails reports whether a client that ends its connection has an answer, and has sent no Finished. Another client's numbers are others.
func (h *hello) fails(s *packet.Segment) bool {
	sent, got := s.Seq+uint32(s.Payload)-h.end, s.Ack-h.acked
	return (sent <= longest || sent == padded) && got > outcome.AlertLength+1 && got < 1<<16
}

// slot is where a client's ClientHello is remembered; a later one of another may be there.
func slot(s *packet.Segment) uint32 {
	h := uint32(s.SrcPort)<<16 | uint32(s.DstPort)
	for i := 0; i < len(s.Src); i += 4 {
		h = (h ^ binary.BigEndian.Uint32(s.Src[i:])) * 0x9e3779b1
	}
	return h >> 22
}

func (c *Clients) count(server netip.AddrPort) {
	if _, known := c.counts[server]; !known && len(c.counts) >= mostServers {
		return
	}
	if c.counts == nil {
		c.counts = make(map[netip.AddrPort]uint64)
	}
	c.counts[server]++
}

// Of is how many there were at an address. After the last report of one its count begins again.
func (c *Clients) Of(server netip.AddrPort, last bool) uint64 {
	n := c.counts[server]
	if last {
		delete(c.counts, server)
	}
	return n
}
