// Package unheard finds clients that are connected, and of whose segments something in front of their sockets drops or
// rejects what they send, as a rule for what connection tracking does not know. It is pure.
package unheard

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/counts"
	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/shares"
)

const (
	// askAfter is how long TCP has for a segment.
	askAfter = 100 * time.Millisecond
	// calmFor is how long none is asked for after a round that left none in doubt: a question takes some microseconds, and a FIN is
	// repeated for many seconds.
	calmFor = 400 * time.Millisecond
	// margin is more than a jiffy of the kernel's and what two clocks differ by.
	margin = 50 * time.Millisecond
	// mostWaiting bounds those that are to be asked for, and those of whose FIN a socket has not heard.
	mostWaiting = 64
	// mostCounted bounds the clients that are known to be counted, countedFor is for how long they are: a FIN is repeated
	// for less (tcp_orphan_retries).
	mostCounted = 1024
	countedFor  = 2 * time.Minute
)

// Clients counts them. It is not safe for concurrent use.
type Clients struct {
	// Socket says what the namespace has for two ends. The client's segment came by a device with this index.
	Socket func(server, client netip.AddrPort, device uint32) kernel.Found
	// Clock is the present.
	Clock func() time.Duration

	waiting shares.Slots[sighting]      // until they are asked for
	due     []due                       // used again
	next    time.Duration               // none is asked for before
	doubted shares.Slots[sighting]      // those of whose FIN their socket has not heard, while one may be repeated
	counted shares.Slots[time.Duration] // when they were last seen
	clients counts.Clients
}

// sighting is a segment that its socket has to know of.
type sighting struct {
	device uint32
	reset  bool
	at     time.Duration

	// Of a FIN of which its socket has not heard: when it was asked, and how many segments had come to it by then.
	asked    time.Duration
	segments uint32
}

type due struct {
	shares.Ends
	sighting
}

// Observe takes in a segment to or from a port that is followed: a client's FIN, which its socket has to know of, and a reset
// of the server, after which TCP has no socket. A client that waits for an answer sends no FIN before what it
// has sent is acknowledged: its window is one segment (tcp_enter_loss).
func (c *Clients) Observe(at time.Duration, s *packet.Segment, follows func(port uint16) bool) {
	switch rst := s.Flags&packet.FlagRST != 0; {
	case s.Flags&packet.FlagSYN != 0:
	case !rst && s.Flags&packet.FlagFIN != 0 && s.Incoming && follows(s.DstPort):
		c.wait(new(shares.ToServer(s)), sighting{at: at, device: s.Index})
	case rst && s.Outgoing && follows(s.SrcPort):
		c.wait(new(shares.ToClient(s)), sighting{at: at, device: s.Index, reset: true})
	}
}

func (c *Clients) wait(e *shares.Ends, s sighting) {
	drawn := lot()
	if !s.reset && c.waiting.Refuses(e, mostWaiting, drawn) {
		return // be it there or not
	}
	if before := c.waiting.Find(e); before != nil {
		before.reset = before.reset || s.reset
		return
	}
	s.device &^= packet.Successor
	c.waiting.Add(e, s, mostWaiting, drawn)
}

// lot is drawn where it is not known whose packet is forged: of the many addresses of a flood neither the first nor the last have
// all slots.
func lot() uint64 { return rand.Uint64N(1 << 32) }

// Advance asks for the sockets of those that were seen some time ago.
func (c *Clients) Advance(now time.Duration) {
	if now < c.next {
		return
	}
	c.doubted.RemoveIf(func(_ *shares.Ends, s *sighting) bool { return s.asked < now-countedFor })
	c.due = c.due[:0]
	c.waiting.RemoveIf(func(e *shares.Ends, s *sighting) bool {
		if now-s.at < askAfter {
			return false
		}
		c.due = append(c.due, due{*e, *s})
		return true
	})
	for i := range c.due {
		c.ask(&c.due[i].Ends, &c.due[i].sighting)
	}
	if len(c.due) > 0 && c.doubted.Len() == 0 {
		c.next = now + calmFor
	}
}

// ask asks for a client's socket, and counts the client if that has not heard of a reset, or of two FINs. A socket drops a FIN
// with a sequence number that it does not expect, and has not heard of it either. Whoever knows the ends of a connection can forge one; but
// it is a segment that has come to the socket, and a rule's are none.
func (c *Clients) ask(e *shares.Ends, s *sighting) {
	asked := c.Clock()
	f := c.Socket(e.Server.Netip(), e.Client.Netip(), s.device)
	if f.Unheard <= asked-s.at+margin {
		c.doubted.Forget(e)
		return
	}
	before := c.doubted.Find(e)
	switch {
	case s.reset, before != nil && before.segments == f.Segments && s.at > before.asked+margin:
		c.doubted.Forget(e)
		c.count(e, asked)
	case before == nil:
		s.asked, s.segments = asked, f.Segments
		c.doubted.Add(e, *s, mostWaiting, lot())
	case before.segments != f.Segments:
		before.asked, before.segments = asked, f.Segments
	}
}

// count counts a client once, as long as there is room to know that. It draws no lot: who had to leave would count again.
func (c *Clients) count(e *shares.Ends, at time.Duration) {
	if seen := c.counted.Find(e); seen != nil {
		*seen = at
		return
	}
	if c.counted.Len() >= mostCounted {
		c.counted.RemoveIf(func(_ *shares.Ends, seen *time.Duration) bool { return *seen < at-countedFor })
	}
	if c.counted.Add(e, at, mostCounted, 0) {
		c.clients.Add(e.Server.Netip())
	}
}

// Of is how many there were at an address that is followed. After the last report of one its count begins again.
func (c *Clients) Of(server netip.AddrPort, last bool) uint64 { return c.clients.Of(server, last) }
