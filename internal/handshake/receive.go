package handshake

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/timers"
)

const (
	maxSYNData = 1 << 16 // TCP Fast Open: a SYN with data is acknowledged with it
	maxFlight  = 1 << 20 // what a client sends before it has an answer
)

// syn takes in a SYN of the client, and returns when to judge it if nothing
// else comes.
//
// The time between SYNs doubles at most, from two seconds to four: after one
// that the network lost the next comes after six times the time before.
func (a *attempt) syn(at time.Duration) (deadline time.Duration) {
	gap := at - a.first - ms(a.lastSYN)
	if a.serverISN != 0 && gap >= timers.AtOnce && (a.replies > 1 || at-a.first-ms(a.lastReply) >= timers.AtOnce) {
		a.vain = inc(a.vain)
	}
	a.lastSYN = since(a.first, at)
	a.syns = inc(a.syns)
	a.signs = a.signs&^rejected | owed
	if a.syns > 1 && gap < timers.AtOnce {
		return at + timers.Challenged
	}
	return at + timers.SYN(gap)
}

// reply takes in a SYN-ACK of the server.
func (a *attempt) reply(at time.Duration, serverISN uint32, wide bool) (deadline time.Duration) {
	if a.unread() && at-a.first-ms(a.lastSYN) >= timers.AtOnce {
		a.suppose() // this one is repeated
	}
	if a.unread() {
		a.signs &^= whileUnread
	}
	if a.replies > 0 && !a.has(owed) {
		a.repeats = inc(a.repeats)
		a.notIn(mark(a.first, at), mark(a.first, at)) // its timer ends when a socket is made
	}
	if a.replies > 0 && !a.has(overheard) {
		a.signs |= unheard
	}
	a.replies = inc(a.replies)
	a.serverISN = serverISN
	a.lastReply = since(a.first, at)
	a.signs &^= owed | refusal | overheard
	if wide {
		a.signs |= overheard
	}
	return at + firstAsk
}

// serverReset takes in a RST of the server. Its sequence number is 0 if the SYN
// met no listener (tcp_v4_send_reset), and follows the SYN-ACK's if the server
// has sent nothing since: tcp_abort_on_overflow, or a listener that closes
// (inet_csk_listen_stop), or a close with SO_LINGER. Only a socket sends one that
// acknowledges something (tcp_send_active_reset).
func (a *attempt) serverReset(at time.Duration, s *packet.Segment) (deadline time.Duration, ok bool) {
	sent, now := s.Seq-a.serverISN-1, mark(a.first, at)
	switch {
	case a.replies > 0 && a.serverISN != 0 && sent < 1<<31:
		if s.Flags&packet.FlagACK != 0 {
			a.showsSocket(now, true)
			if got := s.Ack - a.isn - 1; got > 0 && got < maxUpload && !a.has(finished|shut) {
				a.signs |= talked
			}
		}
		switch {
		case sent > 1 && !a.has(finished|left):
			a.signs |= served | closed
		case sent == 1 || a.has(finished|left|counted): // one is its FIN (shutdown(2), then a close with unread bytes)
			a.serverEnded(now)
		default:
			a.signs |= wasReset
			a.ended = now
		}
		return at, true
	case a.has(owed) && s.Seq == 0 && s.Flags&packet.FlagACK != 0 && s.Ack-a.isn-1 < maxSYNData:
		// Should the answer be lost, the client asks again as if there had been none.
		if a.replies == 0 {
			a.signs &^= whileUnread
		}
		a.signs = a.signs&^(owed|overheard) | refusal
		return at, true
	}
	return 0, false
}

// clientReset takes in a RST of the client. Without ACK it answers a SYN-ACK of
// which the client's host knows nothing (RFC 9293, 3.10.7.1); otherwise the
// client had a connection, and ends it. A client that has ended its connection
// may answer the server's FIN by such an ACK, too, and on two processors either
// can come first (tcp_disconnect unhashes the socket before it sends the latter).
func (a *attempt) clientReset(at time.Duration, s *packet.Segment) (deadline time.Duration, ok bool) {
	switch {
	case a.replies == 0:
		// It was sent a challenge ACK, and tries again.
		challenged := a.has(owed)
		a.signs &^= owed
		return at + max(timers.Challenged, a.patience()), challenged
	case s.Flags&packet.FlagACK == 0 && s.Seq == a.isn+1 && !a.has(answered):
		// Or it rejects a SYN-ACK that echoes an older timestamp (PAWSActiveRejected),
		// and tries again.
		a.signs |= rejected
		return at + timers.FirstSYN, true
	case s.Seq-a.isn-1 < maxFlight:
		now := mark(a.first, at)
		a.signs = a.signs&^rejected | answered
		if s.Seq-a.isn-1 > 0 && !a.has(finished) {
			a.signs |= talked
		}
		if !a.supposed() && s.Flags&packet.FlagACK != 0 {
			a.acknowledges(s, now)
		}
		a.ends(now, left)
		if a.ended == 0 {
			a.ended = now
		}
		if !a.supposed() && s.Flags&packet.FlagACK == 0 && s.Seq-a.isn-1 > 0 { // it answers a segment that acknowledged its data
			a.showsSocket(now, true)
		}
		return at, true
	}
	return 0, false
}
