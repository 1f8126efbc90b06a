package handshake

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// proves reports whether a segment of the client shows that it had a SYN-ACK.
func (a *attempt) proves(s *packet.Segment) bool {
	sent := s.Seq - a.isn - 1
	return s.Flags&packet.FlagACK != 0 && sent < maxUpload || s.Flags&packet.FlagRST != 0 && sent < maxFlight
}

// heard takes in the client's SYN, whose answer is not read.
func (a *attempt) heard(at time.Duration) (deadline time.Duration) {
	if a.replies == 0 {
		a.signs |= unseen
	} else {
		a.signs &^= owed
		a.lastReply = a.lastSYN
	}
	return at + unreadPatience
}

// supposeRepeated is suppose of a client that is still half-open, and has been sent
// another SYN-ACK if a timeout has passed.
func (a *attempt) supposeRepeated(at time.Duration) (deadline time.Duration) {
	a.suppose()
	left := a.first + ms(a.lastReply)
	if at-left < synAckTimeout {
		return left + unreadPatience
	}
	a.replies, a.repeats = 2, 1
	a.lastReply += uint32(synAckTimeout / time.Millisecond)
	return left + synAckTimeout + synAckTimeout<<1 + slack
}

// undropped is when a client with a SYN-ACK that was not read is known to have had its ACK
// taken, though the counters are not calm: it was not repeated. 0 for others.
func (a *attempt) undropped() time.Duration {
	if !a.supposed() || a.repeats > 0 {
		return 0
	}
	return a.first + ms(a.lastSYN) + unreadPatience
}

// restore takes over all of another attempt of the same client but its place in the table.
func (a *attempt) restore(b *attempt) {
	b.slot, b.next, b.previous, b.chain = a.slot, a.next, a.previous, a.chain
	*a = *b
}
