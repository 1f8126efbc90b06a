package handshake

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/timers"
)

// attempt is a client that tries to connect, and one that was let in until it is known
// whether it was answered: 96 bytes, and no pointers, so that 100,000 of them are 9.2 MiB
// that the garbage collector does not scan. Times are milliseconds after first, 0 for never.
type attempt struct {
	client     packet.Addr
	clientPort uint16
	endpoint   uint16 // of Tracker.endpoints
	isn        uint32 // the client's initial sequence number
	serverISN  uint32 // of the latest SYN-ACK
	link       uint16 // interface of its first SYN, low bits
	slot       uint16 // of the wheel

	first     time.Duration // its first SYN
	lastSYN   uint32
	lastReply uint32 // the latest SYN-ACK
	lastIn    uint32 // its latest segment for which the kernel could make a socket, before its FIN
	absent    uint32 // the latest time at which there was no socket for it
	before    uint32 // an earlier one (see notIn)
	entered   uint32 // when the socket was made, if it is inside or late
	ended     uint32 // its first FIN or RST

	next, previous int32 // in the wheel's slot
	chain          int32 // in the index

	syns    uint8 // saturate
	replies uint8 // SYN-ACKs
	repeats uint8 // of these, those that no SYN had asked for
	vain    uint8 // SYNs that were repeated though a SYN-ACK had left
	unknown uint8 // SYNs before the latest, of which it is not known yet whether they were answered
	asks    uint8 // how often the kernel was asked since it was counted
	rtt     uint16
	at      stage  // in which it is counted among the open ones
	spoke   uint16 // when it sent its first byte, if that was read
	signs   signs
}

// signs are what else was seen of an attempt.
type signs uint32

const (
	owed       signs = 1 << iota // a SYN that has not been answered
	refusal                      // the latest answer was "nothing listens"
	wasReset                     // the server reset the connection before it sent anything
	rejected                     // the client's host knew nothing of a connection
	left                         // the client reset the connection
	finished                     // the client sent FIN
	shut                         // it did at once behind its request, and was not let in by then
	overheard                    // the client's segments were read when the latest SYN-ACK left
	unheard                      // they were not when an earlier one did
	ignored                      // a SYN of it was not answered
	answered                     // the client acknowledged the SYN-ACK
	talked                       // the client sent at least a byte
	served                       // the client was sent at least a byte, while it was there
	closed                       // the server ended the connection
	inside                       // it was let in while it was there
	late                         // it was let in after it had left
	asking                       // it is in Tracker.asking
	counted                      // its outcome is
	timed                        // the first byte of its answer is
	awaited                      // it may be in what has yet to be read
	unserved                     // the server had sent nothing when the client ended it
	taking                       // the server's socket has taken data of it
	untaken                      // it had not when the kernel was asked
	sentAfter                    // the server sent an answer and its FIN after the client's FIN
	received                     // the client acknowledged data of the server
	turnedAway                   // it is counted as stalled, or, of those inside, as unanswered
	waited                       // its connection ended long after its FIN
	turnedOut                    // the server ended the connection first
	there                        // it was there when the server had a socket for it

	// As long as no SYN-ACK was read:
	unseen   // one may have left
	replaced // the client has since used its port again
	missing  // the kernel had no socket for it when it was asked

	whileUnread = unseen | replaced | missing
)

func (a *attempt) has(s signs) bool { return a.signs&s != 0 }

// duplicate: a packet passes a bridge, a bond and their members within this time, and nobody repeats a SYN so soon.
const duplicate = 100 * time.Millisecond

// local: its client is on this machine.
func (a *attempt) local() bool { return a.link&^packet.Successor == packet.Loopback }

// unanswered: nothing has come back yet, and the latest SYN has no answer. One that comes when the client's host was
// too slow to take the SYN-ACK is answered by an ACK, or not at all (tcp_check_req), and is not dropped by a queue.
func (a *attempt) unanswered() bool { return a.has(owed) && a.replies == 0 && !a.unread() }

// unread: a SYN-ACK may have left that was not read, and nothing has proved it.
func (a *attempt) unread() bool { return a.replies == 0 && a.has(unseen) }

// replaced: so, and another attempt has the same addresses.
func (a *attempt) replaced() bool { return a.unread() && a.has(replaced) }

// unreached: SYN-ACKs left for it, and it repeats its SYN, which nobody does who has one.
func (a *attempt) unreached() bool { return a.vain > 0 && !a.has(answered|rejected|left|finished) }

// patience is until its next SYN comes, or the one after it, since the latest; stopped is when it would have come.
func (a *attempt) patience() time.Duration { return timers.SYN(ms(a.lastSYN)) }

func (a *attempt) stopped() time.Duration { return a.first + ms(a.lastSYN) + a.patience() }

// supposed: the SYN-ACK was not read, and something has proved it.
func (a *attempt) supposed() bool { return a.replies > 0 && a.serverISN == 0 }

// suppose takes in a SYN-ACK that was not read. It left at once, or never.
func (a *attempt) suppose() {
	a.replies, a.serverISN, a.lastReply = 1, 0, a.lastSYN
	a.signs &^= owed | refusal | whileUnread
}

// suspicious attempts are what a flood consists of. A client of which it is not
// known whether it answered a SYN cookie is none.
func (a *attempt) suspicious(o outcome.Outcome) bool {
	return a.syns == 1 && (o == outcome.GaveUp || o == outcome.HalfOpen)
}

func ms(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }

func since(first, at time.Duration) uint32 {
	return uint32(max(at-first, 0) / time.Millisecond)
}

// mark is since for times of which 0 is never.
func mark(first, at time.Duration) uint32 { return max(since(first, at), 1) }

func inc(n uint8) uint8 {
	if n < 255 {
		return n + 1
	}
	return n
}

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
	if at-left < timers.First {
		return left + unreadPatience
	}
	a.replies, a.repeats = 2, 1
	a.lastReply += uint32(timers.First / time.Millisecond)
	return left + timers.First + timers.SynAck(1)
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
