// Package unheard finds clients that are connected, and of whose segments something in front of their sockets drops or
// rejects what they send, as a rule for what connection tracking does not know. It is pure.
package unheard

import (
	"math/rand/v2"
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
	// mostWaiting bounds those that are to be asked for, and those of whose FIN a socket has not heard.
	mostWaiting = 64
	// mostCounted bounds the clients that are known to be counted, countedFor is for how long they are: a FIN is repeated
	// for less (tcp_orphan_retries). mostUntold bounds the addresses of whose clients nobody has asked yet.
	mostCounted = 1024
	countedFor  = 2 * time.Minute
	mostUntold  = 64
)

// Clients counts them. It is not safe for concurrent use.
type Clients struct {
	// Socket says what the namespace has for two ends. The client's segment came by a device with this index.
	Socket func(server, client netip.AddrPort, device uint32) kernel.Found
	// Clock is the present.
	Clock func() time.Duration

	waiting slots                     // until they are asked for
	doubted slots                     // those of whose FIN their socket has not heard
	counted slots                     // with when they were last seen
	counts  map[netip.AddrPort]uint64 // by server
	untold  map[netip.AddrPort]uint64 // of those that nobody has asked of
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
	c.waiting.add(s, mostWaiting, lot())
}

// lot is drawn where it is not known whose packet is forged: of the many addresses of a flood neither the first nor the last have
// all slots.
func lot() uint64 { return rand.Uint64N(1 << 32) }

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
		c.doubted.add(s, mostWaiting, lot())
	case before.segments != f.Segments:
		before.asked, before.segments = asked, f.Segments
	}
}

// count counts a client once, as long as there is room to know that. It draws no lot: who had to leave would count again.
func (c *Clients) count(e ends, at time.Duration) {
	if known := c.counted.find(&e); known != nil {
		known.at = at
		return
	}
	if len(c.counted.taken) >= mostCounted {
		c.counted.expire(at - countedFor)
	}
	if !c.counted.add(&sighting{ends: e, at: at}, mostCounted, 0) {
		return
	}
	server := e.server.netip()
	if _, counted := c.counts[server]; counted {
		c.counts[server]++
		return
	}
	if c.untold == nil {
		c.counts, c.untold = make(map[netip.AddrPort]uint64), make(map[netip.AddrPort]uint64)
	}
	if c.untold[server]++; len(c.untold) > mostUntold {
		c.forgetUntold()
	}
}

// forgetUntold forgets an address of which nobody has asked: one of the port that has most of these, as a server can be asked at
// each of 127.0.0.0/8.
func (c *Clients) forgetUntold() {
	ports := make(map[uint16]int)
	for server := range c.untold {
		ports[server.Port()]++
	}
	var removed netip.AddrPort
	for server := range c.untold {
		if ports[server.Port()] > ports[removed.Port()] {
			removed = server
		}
	}
	delete(c.untold, removed)
}

// Of is how many there were at an address that is followed. After the last report of one its count begins again.
func (c *Clients) Of(server netip.AddrPort, last bool) uint64 {
	if n, untold := c.untold[server]; untold {
		delete(c.untold, server)
		c.counts[server] = n
	}
	n := c.counts[server]
	if last {
		delete(c.counts, server)
	}
	return n
}
