package handshake

import "time"

// attempt is a client that tries to connect: 64 bytes, and no pointers, so that
// 100,000 of them are 6.1 MiB that the garbage collector does not scan.
type attempt struct {
	client     addr
	clientPort uint16
	endpoint   uint16 // of Tracker.endpoints
	isn        uint32 // the client's initial sequence number
	serverISN  uint32 // of the latest SYN-ACK
	link       uint16 // interface of its first SYN, low bits
	slot       uint16 // of the wheel

	first     time.Duration // its first SYN
	lastSYN   uint32        // milliseconds after first
	lastReply uint32        // the latest SYN-ACK, likewise

	next, previous int32 // in the wheel's slot
	chain          int32 // in the index

	syns    uint8 // saturate
	replies uint8 // SYN-ACKs
	repeats uint8 // of these, those that no SYN had asked for
	signs   signs
}

// signs are what else was seen of an attempt.
type signs uint8

const (
	owed      signs = 1 << iota // a SYN that has not been answered
	refusal                     // the latest answer was "nothing listens"
	wasReset                    // the server reset the connection before it sent anything
	gone                        // the client's host knew nothing of a connection
	left                        // the client reset the connection
	overheard                   // the client's segments were read when the latest SYN-ACK left
	answered                    // the client acknowledged the SYN-ACK
	served                      // the client acknowledged bytes of the server

	// As long as no SYN-ACK was read three of the bits mean something else: that one may
	// have left, that the client has since used its port again, and that the kernel had no
	// socket for it when it was asked.
	unseen   = overheard
	replaced = left
	missing  = wasReset

	whileUnread = unseen | replaced | missing
)

func (a *attempt) has(s signs) bool { return a.signs&s != 0 }

// The kernel's timers.
const (
	// synAckTimeout is when a SYN-ACK is repeated for the first time
	// (TCP_TIMEOUT_INIT), as is a SYN; the times double.
	synAckTimeout = time.Second
	// slack is for timers that expire late.
	slack = time.Second
	// duplicate: a packet passes a bridge, a bond and their members within this
	// time, and nobody repeats a SYN so soon.
	duplicate = 100 * time.Millisecond
	// firstPatience is for clients that repeat their first SYN after three seconds
	// (RFC 1122, 4.2.3.1); Linux does after one.
	firstPatience = 4 * time.Second
	// challengedPatience is for a client whose port was used before, while the server
	// still has that connection: its SYN is answered by a challenge ACK (RFC 5961),
	// which it resets, and it repeats the SYN at once (TCP_TIMEOUT_MIN in
	// tcp_rcv_synsent_state_process). Linux without tcp_syn_linear_timeouts (before 6.5)
	// repeats it 2 s and 6 s later, and the network may lose one of these.
	challengedPatience = 6*time.Second + slack
	// atOnce is less than any timeout of a SYN (TCP_TIMEOUT_INIT).
	atOnce = synAckTimeout / 2
	// maxPatience covers the longest time between two SYNs of Linux with
	// tcp_syn_retries 6.
	maxPatience = 70 * time.Second
)

// syn takes in a SYN of the client, and returns when to judge it if nothing
// else comes.
//
// The time between SYNs doubles at most, from two seconds to four: after one
// that the network lost the next comes after six times the time before.
func (a *attempt) syn(at time.Duration) (deadline time.Duration) {
	gap := at - a.first - ms(a.lastSYN)
	a.lastSYN = since(a.first, at)
	a.syns = inc(a.syns)
	a.signs = a.signs&^gone | owed
	if a.syns > 1 && gap < atOnce {
		return at + challengedPatience
	}
	return at + min(max(firstPatience, 6*gap+slack), maxPatience)
}

// unanswered: nothing has come back yet, and the latest SYN has no answer. One
// that comes when the client's host was too slow to take the SYN-ACK is answered
// by an ACK, or not at all (tcp_check_req), and is not dropped by a queue.
func (a *attempt) unanswered() bool { return a.has(owed) && a.replies == 0 && !a.unread() }

// reply takes in a SYN-ACK of the server.
func (a *attempt) reply(at time.Duration, serverISN uint32, wide bool) (deadline time.Duration) {
	if a.unread() && at-a.first-ms(a.lastSYN) >= atOnce {
		a.suppose() // this one is repeated
	}
	if a.unread() {
		a.signs &^= whileUnread
	}
	if a.replies > 0 && !a.has(owed) {
		a.repeats = inc(a.repeats)
	}
	a.replies = inc(a.replies)
	a.serverISN = serverISN
	a.lastReply = since(a.first, at)
	a.signs &^= owed | refusal | overheard
	if wide {
		a.signs |= overheard
	}
	return at + synAckTimeout<<min(a.repeats, 6) + slack
}

// serverReset takes in a RST of the server. Its sequence number is 0 if the SYN
// met no listener (tcp_v4_send_reset), and follows the SYN-ACK's if the server
// has sent nothing since: tcp_abort_on_overflow, or a listener that closes
// (inet_csk_listen_stop), or a close with SO_LINGER.
func (a *attempt) serverReset(at time.Duration, s *Segment) (deadline time.Duration, ok bool) {
	switch {
	case a.replies > 0 && s.seq == a.serverISN+1:
		a.signs |= wasReset
		return at, true
	case a.has(owed) && s.seq == 0 && s.flags&flagACK != 0 && s.ack-a.isn-1 < maxSYNData:
		// Should the answer be lost, the client asks again as if there had been none.
		if a.replies == 0 {
			a.signs &^= whileUnread
		}
		a.signs = a.signs&^(owed|overheard) | refusal
	}
	return 0, false
}

const (
	maxSYNData = 1 << 16 // TCP Fast Open: a SYN with data is acknowledged with it
	maxFlight  = 1 << 20 // what a client sends before it has an answer
)

// clientReset takes in a RST of the client. Without ACK it answers a SYN-ACK of
// which the client's host knows nothing (RFC 9293, 3.10.7.1); otherwise the
// client had a connection, and ends it. A client that has ended its connection
// may answer the server's FIN by such an ACK, too, and on two processors either
// can come first (tcp_disconnect unhashes the socket before it sends the latter).
func (a *attempt) clientReset(at time.Duration, s *Segment) (deadline time.Duration, ok bool) {
	switch {
	case a.replies == 0:
		// It was sent a challenge ACK, and tries again.
		challenged := a.has(owed)
		a.signs &^= owed
		return at + min(max(challengedPatience, 6*ms(a.lastSYN)+slack), maxPatience), challenged
	case s.flags&flagACK == 0 && s.seq == a.isn+1 && !a.has(answered):
		// Or it rejects a SYN-ACK that echoes an older timestamp (PAWSActiveRejected),
		// and tries again.
		a.signs |= gone
		return at + firstPatience, true
	case s.seq-a.isn-1 < maxFlight && a.repeats > 0:
		a.signs |= left
		return at, true
	case s.seq-a.isn-1 < maxFlight:
		a.signs = a.signs&^gone | answered
		return at + slack, true
	}
	return 0, false
}

// segment takes in any other segment of the client.
func (a *attempt) segment(s *Segment) {
	if a.replies == 0 || s.flags&flagACK == 0 {
		return
	}
	switch acked := s.ack - a.serverISN - 1; {
	case a.supposed():
		a.signs |= answered
	case acked == 0:
		a.signs |= answered
	case acked < 1<<31:
		a.signs |= answered | served
	}
}

// unread: a SYN-ACK may have left that was not read, and nothing has proved it.
func (a *attempt) unread() bool { return a.replies == 0 && a.has(unseen) }

// replaced: so, and another attempt has the same addresses.
func (a *attempt) replaced() bool { return a.unread() && a.has(replaced) }

// supposed: the SYN-ACK was not read, and something has proved it.
func (a *attempt) supposed() bool { return a.replies > 0 && a.serverISN == 0 }

// suppose takes in a SYN-ACK that was not read. It left at once, or never.
func (a *attempt) suppose() {
	a.replies, a.serverISN, a.lastReply = 1, 0, a.lastSYN
	a.signs &^= owed | refusal | whileUnread
}

// judge says what happened to the client. retries is tcp_synack_retries; cookies,
// that SYN cookies were sent when its SYN-ACK left; socket, what the kernel has
// for it.
func (a *attempt) judge(retries uint8, cookies bool, socket func() Socket) Outcome {
	switch {
	case a.has(wasReset):
		return Reset
	case a.has(refusal):
		return Refused
	case a.replies == 0:
		return GaveUp
	case a.has(served):
		return a.letIn()
	case a.has(gone) && a.repeats == 0 && a.syns == 1:
		return HalfOpen // it was answered at once: a scan, or a check of the port that ends with the SYN-ACK
	case a.has(gone) && a.repeats == 0:
		return GaveUp
	case a.has(gone | left):
		return Stalled
	case !a.has(answered) && (a.has(overheard) || cookies && a.repeats == 0):
		return HalfOpen
	case a.repeats >= min(retries, leastRetries) || a.replies > retries:
		return a.repeated(retries, socket)
	}
	return a.letIn()
}

// leastRetries is how often a SYN-ACK is repeated, whatever tcp_synack_retries says,
// while half-open clients are many for the backlog (reqsk_timer_handler).
const leastRetries = 2

// repeated judges a client whose SYN-ACK was repeated as often as it may have been to
// the end: it was let in if it has a socket.
func (a *attempt) repeated(retries uint8, socket func() Socket) Outcome {
	met := socket()
	has := met == Connection || met == SocketUnknown && a.repeats < retries && a.replies <= retries
	if !has {
		return Stalled
	}
	return a.letIn()
}

// suspicious attempts are what a flood consists of. A client of which it is not
// known whether it answered a SYN cookie is none.
func (a *attempt) suspicious(o Outcome) bool {
	return a.syns == 1 && (o == GaveUp || o == HalfOpen && a.has(overheard|gone))
}

func (a *attempt) letIn() Outcome {
	if a.syns == 1 && a.replies == 1 {
		return Connected
	}
	return Delayed
}

// delay is how long the client waited, if it was let in.
func (a *attempt) delay() time.Duration { return ms(a.lastReply) }

func ms(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }

func since(first, at time.Duration) uint32 {
	return uint32(max(at-first, 0) / time.Millisecond)
}

func inc(n uint8) uint8 {
	if n < 255 {
		return n + 1
	}
	return n
}
