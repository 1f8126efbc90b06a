// Package unheard finds clients that are connected, and of whose segments something in front of their sockets drops or
// rejects what they send, as a rule for what connection tracking does not know. It is pure.
package unheard

import (
	"maps"
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
	// mostCounted bounds the clients that are known to be counted, countedFor is for how long they are: a FIN is repeated
	// for less (tcp_orphan_retries). mostServers bounds the addresses.
	mostCounted = 1024
	countedFor  = 2 * time.Minute
	mostServers = 64
)

// Clients counts them. It is not safe for concurrent use.
type Clients struct {
	// Socket says what the namespace has for two ends. The client's segment came by a device with this index.
	Socket func(server, client netip.AddrPort, device uint32) kernel.Found
	// Clock is the present.
	Clock func() time.Duration

	waiting slots                     // until they are asked for
	doubted slots                     // those of whose FIN their socket has not heard
	counted map[ends]time.Duration    // when they were last seen
	counts  map[netip.AddrPort]uint64 // by server
}

type ends struct{ server, client end }

type end struct {
	addr packet.Addr
	port uint16
}

func (e *end) netip() netip.AddrPort { return netip.AddrPortFrom(e.addr.Netip(), e.port) }

// sighting is a segment that its socket has to know of.
type sighting struct {
	ends
	device uint32
	reset  bool
	at     time.Duration

	// Of a FIN of which its socket has not heard: when it was asked, and how many segments had come to it by then.
	asked    time.Duration
	segments uint32
}

// Observe takes in a segment to or from a port that is followed: a client's FIN, which its socket has to know of, and a reset
// of the server, after which TCP has no socket. A client that waits for an answer sends no FIN before what it
// has sent is acknowledged: its window is one segment (tcp_enter_loss).
func (c *Clients) Observe(at time.Duration, s *packet.Segment, follows func(port uint16) bool) {
	switch rst := s.Flags&packet.FlagRST != 0; {
	case s.Flags&packet.FlagSYN != 0:
	case !rst && s.Flags&packet.FlagFIN != 0 && s.Incoming && follows(s.DstPort):
		c.wait(&sighting{ends: ends{end{s.Dst, s.DstPort}, end{s.Src, s.SrcPort}}, at: at}, s.Index)
	case rst && s.Outgoing && follows(s.SrcPort):
		c.wait(&sighting{ends: ends{end{s.Src, s.SrcPort}, end{s.Dst, s.DstPort}}, at: at, reset: true}, s.Index)
	}
}

func (c *Clients) wait(s *sighting, device uint32) {
	if before := c.waiting.find(&s.ends); before != nil {
		before.reset = before.reset || s.reset
		return
	}
	s.device = device &^ packet.Successor
	c.waiting.add(s)
}

// Advance asks for the sockets of those that were seen some time ago.
func (c *Clients) Advance(now time.Duration) {
	for i := 0; i < len(c.waiting.taken); {
		s := c.waiting.taken[i].sighting
		if now-s.at < askAfter {
			i++
			continue
		}
		c.waiting.remove(i)
		c.ask(&s)
	}
}

// ask asks for a client's socket, and counts the client if that has not heard of a reset, or of two FINs. A socket drops a FIN
// with a sequence number that it does not expect, and has not heard of it either. Whoever knows the ends of a connection can forge one; but
// it is a segment that has come to the socket, and a rule's are none.
func (c *Clients) ask(s *sighting) {
	asked := c.Clock()
	f := c.Socket(s.server.netip(), s.client.netip(), s.device)
	if f.Unheard <= asked-s.at+margin {
		c.doubted.forget(&s.ends)
		return
	}
	before := c.doubted.find(&s.ends)
	switch {
	case s.reset, before != nil && before.segments == f.Segments && s.at > before.asked+margin:
		c.doubted.forget(&s.ends)
		c.count(s.ends, asked)
	case before == nil:
		s.asked, s.segments = asked, f.Segments
		c.doubted.add(s)
	case before.segments != f.Segments:
		before.asked, before.segments = asked, f.Segments
	}
}

// count counts a client once, as long as there is room to know that.
func (c *Clients) count(e ends, at time.Duration) {
	if c.counted == nil {
		c.counted, c.counts = make(map[ends]time.Duration), make(map[netip.AddrPort]uint64)
	}
	if _, is := c.counted[e]; !is {
		if len(c.counted) >= mostCounted {
			maps.DeleteFunc(c.counted, func(_ ends, seen time.Duration) bool { return at-seen > countedFor })
		}
		server := e.server.netip()
		if _, known := c.counts[server]; len(c.counted) >= mostCounted || !known && len(c.counts) >= mostServers {
			return
		}
		c.counts[server]++
	}
	c.counted[e] = at
}

// Of is how many there were at an address. After the last report of one its count begins again.
func (c *Clients) Of(server netip.AddrPort, last bool) uint64 {
	n := c.counts[server]
	if last {
		delete(c.counts, server)
	}
	return n
}
