// Package unheard finds clients that are connected, and of whose segments something in front of their sockets drops or
// rejects what they send, as a rule for what connection tracking does not know. It is pure.
package unheard

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

const (
	// askAfter is how long TCP has for a segment.
	askAfter = 100 * time.Millisecond
	// margin is more than a jiffy of the kernel's and what two clocks differ by.
	margin = 50 * time.Millisecond
	// mostWaiting bounds the questions within askAfter, mostCounted the clients that are known to be counted, mostServers the
	// addresses.
	mostWaiting = 64
	mostCounted = 64
	mostServers = 64
)

// Clients counts them. It is not safe for concurrent use.
type Clients struct {
	// Socket says what the namespace has for two ends. The client's segment came by a device with this index.
	Socket func(server, client netip.AddrPort, device uint32) kernel.Found
	// Clock is the present.
	Clock func() time.Duration

	waiting [mostWaiting]sighting
	number  int
	counted [mostCounted]ends
	next    int
	counts  map[netip.AddrPort]uint64 // by server
}

type ends struct{ server, client netip.AddrPort }

// sighting is a segment that its socket has to know of.
type sighting struct {
	ends
	device uint32
	at     time.Duration
}

// Observe takes in a segment to or from a port that is followed: a client's FIN, which its socket has to know of, and a reset
// of the server, after which TCP has no socket. A client that waits for an answer sends no FIN before what it
// has sent is acknowledged: its window is one segment (tcp_enter_loss).
func (c *Clients) Observe(at time.Duration, s *packet.Segment, follows func(port uint16) bool) {
	switch rst := s.Flags&packet.FlagRST != 0; {
	case c.number == mostWaiting || s.Flags&packet.FlagSYN != 0:
	case !rst && s.Flags&packet.FlagFIN != 0 && s.Incoming && follows(s.DstPort):
		c.wait(at, s.Index, ends{netip.AddrPortFrom(s.Dst.Netip(), s.DstPort), netip.AddrPortFrom(s.Src.Netip(), s.SrcPort)})
	case rst && s.Outgoing && follows(s.SrcPort):
		c.wait(at, s.Index, ends{netip.AddrPortFrom(s.Src.Netip(), s.SrcPort), netip.AddrPortFrom(s.Dst.Netip(), s.DstPort)})
	}
}

func (c *Clients) wait(at time.Duration, device uint32, e ends) {
	c.waiting[c.number] = sighting{e, device &^ packet.Successor, at}
	c.number++
}

// Advance asks for the sockets of those that were seen some time ago.
func (c *Clients) Advance(now time.Duration) {
	kept := 0
	for _, s := range c.waiting[:c.number] {
		if now-s.at < askAfter {
			c.waiting[kept] = s
			kept++
			continue
		}
		if f := c.Socket(s.server, s.client, s.device); f.Unheard > c.Clock()-s.at+margin {
			c.count(s.ends)
		}
	}
	c.number = kept
}

// count counts a client once.
func (c *Clients) count(e ends) {
	for _, counted := range c.counted {
		if counted == e {
			return
		}
	}
	c.counted[c.next] = e
	c.next = (c.next + 1) % mostCounted
	if _, known := c.counts[e.server]; !known && len(c.counts) >= mostServers {
		return
	}
	if c.counts == nil {
		c.counts = make(map[netip.AddrPort]uint64)
	}
	c.counts[e.server]++
}

// Of is how many there were at an address. After the last report of one its count begins again.
func (c *Clients) Of(server netip.AddrPort, last bool) uint64 {
	n := c.counts[server]
	if last {
		delete(c.counts, server)
	}
	return n
}
