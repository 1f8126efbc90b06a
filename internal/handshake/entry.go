package handshake

import (
	"cmp"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

const (
	// firstAsk is when the kernel is asked for the socket of a client that was sent a
	// SYN-ACK and of which nothing was read since.
	firstAsk = 250 * time.Millisecond
	// lateAfter is how much later than its handshake takes a client is let in that is Delayed.
	lateAfter = 200 * time.Millisecond
	// jiffies is how far the ages of a socket are off (tcp_jiffies32, at 100 Hz).
	jiffies = 10
	// pendingFIN is how long after it was let in, beside a round trip, a client sends a FIN
	// that it could not send before, as its data was not acknowledged.
	pendingFIN = 20
	// localFIN is that of one on the loopback, whose kernel takes and answers in one go (process_backlog).
	localFIN = 3
	// shutAfter is how soon behind its request, or its handshake where that was not read, a client ends its side that
	// waits for the answer.
	shutAfter = 50
	// probeAfter is when the FIN of one follows whose host sends one segment at a time, as its SYN was repeated
	// (tcp_init_transfer): with the probe for the end of what it has sent, beside two round trips (tcp_schedule_loss_probe).
	probeAfter = 200
	// waitsFor is how long after its FIN the end of a client's connection comes that may have waited for an answer: it
	// may have shut down its side alone, and given up meanwhile, of which no packet tells.
	waitsFor = 1000
)

// segment takes in any other segment of the client than SYN and RST. ask: what the kernel
// has for it now says whether it was let in. all: none of its segments since the SYN-ACK was not read;
// else the first that is read may not be its answer to that, unless it is a bare ACK.
func (a *attempt) segment(at time.Duration, s *packet.Segment, all bool) (ask bool) {
	sent := s.Seq - a.isn - 1
	if a.replies == 0 || s.Flags&packet.FlagACK == 0 || sent >= maxUpload {
		return false
	}
	now, first := mark(a.first, at), !a.has(answered)
	if sent+uint32(s.Payload) > 0 && !a.has(finished) {
		if sent == 0 && all && !a.has(talked) {
			a.spoke = uint16(min(now, spokeMost))
		}
		a.signs |= talked
	}
	if a.supposed() {
		a.signs |= answered
	} else if !a.acknowledges(s, now) {
		return false
	}
	if first && a.repeats == 0 && all || a.answersSYNACK(s, first) {
		came, least := now, uint32(1) // 0 is not known
		if a.has(inside | late) {     // this was not it
			came, least = min(now, a.entered), 0
		}
		a.rtt = uint16(min(max(came-min(a.lastReply, came), least), 1<<16-1))
	}
	switch {
	case a.has(finished):
		a.lastIn = max(now, a.ended+1) // it comes after the FIN, be it in the same millisecond
	case s.Flags&packet.FlagFIN != 0 && a.shutsDown(now):
		a.signs |= shut
		a.lastIn, a.ended = now, cmp.Or(a.ended, now)
	case s.Flags&packet.FlagFIN != 0:
		a.signs |= finished
		a.ended = now
	default:
		a.lastIn = now
	}
	return !a.has(inside|late) || a.pending()
}

// answersSYNACK reports whether a segment is a client's answer to its SYN-ACK, be it that this was repeated: nobody
// else sends a bare ACK before any data, nor one afterwards as long as nothing else has come. first: no earlier
// segment of it was read.
func (a *attempt) answersSYNACK(s *packet.Segment, first bool) bool {
	switch {
	case a.supposed() || s.Flags != packet.FlagACK || s.Payload > 0 || s.Ack != a.serverISN+1:
		return false
	case a.repeats == 0:
		return first && s.Seq == a.isn+1
	}
	return a.rtt == 0 && !a.has(inside|late)
}

// shutsDown reports whether a FIN is that of a client which has only shut down its side (shutdown(2)): it
// stays, and if it leaves no packet shows that.
func (a *attempt) shutsDown(now uint32) bool {
	switch {
	case a.has(shut):
		return true
	case !a.has(talked) || a.has(inside|late|counted) || a.supposed():
		return false
	case a.spoke > 0:
		return a.endsBehind(now)
	}
	return a.repeats == 0 && now <= a.lastReply+uint32(a.rtt)+shutAfter
}

// spokeMost is attempt.spoke of who sent its first byte then, or later.
const spokeMost = 1<<16 - 1

// endsBehind reports whether the client ended its side at once behind its request, of which all was read: no timeout is that short.
func (a *attempt) endsBehind(ended uint32) bool {
	within := uint32(shutAfter)
	if a.syns > 1 {
		within += probeAfter + 2*uint32(a.rtt)
	}
	return a.spoke > 0 && a.spoke < spokeMost && ended <= uint32(a.spoke)+within
}

// clientEnd takes in what the client's own socket says: whether its FIN was that of a client which has left.
func (a *attempt) clientEnd(now uint32, end kernel.Client) {
	switch {
	case a.supposed() || a.has(late|left|closed):
	case end == kernel.ClientShut && a.has(finished) && (a.has(inside) || !a.has(counted)):
		a.signs = a.signs&^finished | shut
		a.lastIn = max(a.lastIn, a.ended)
	case end == kernel.ClientLeft && a.has(shut) && !a.has(finished|inside):
		a.signs = a.signs&^shut | finished
		a.ended = now
	}
}

// pending: it was let in late and by a bare ACK, and what it had sent before has not been
// taken: if it has left, its FIN waits for that.
func (a *attempt) pending() bool {
	return a.has(inside) && !a.has(there) && a.has(untaken) && a.has(talked) && !a.has(taking|counted|served|closed|finished|left) && a.letIn() == outcome.Delayed
}

// acknowledges takes in what a segment of the client acknowledges, and reports whether it can be of this connection.
func (a *attempt) acknowledges(s *packet.Segment, now uint32) bool {
	switch acked := s.Ack - a.serverISN - 1; {
	case acked == 0:
		a.signs |= answered
	case acked < 1<<31:
		a.signs |= answered
		if acked > 1 {
			a.signs |= served | received
		} else { // the server's FIN, be it that this was not read
			a.serverEnded(now)
		}
		a.showsSocket(now, false)
	default:
		return false
	}
	return true
}

// notIn takes in that the kernel has no socket for the client. Of the times before, the latest is kept by which all has
// been read: what is read later may show that there was a socket meanwhile, whatever the kernel said after that.
func (a *attempt) notIn(now, read uint32) {
	if known := min(a.absent, now); known <= read {
		a.before = max(a.before, known)
	}
	a.absent = max(a.absent, now)
}

// wasAbsent is the latest time up to moment at which there was no socket for the client.
func (a *attempt) wasAbsent(moment uint32) uint32 {
	for _, absent := range [...]uint32{a.absent, a.before} {
		if absent <= moment {
			return absent
		}
	}
	return 0
}

// showsSocket takes in a segment of now that shows that there was a socket for the client. That there is none any more
// may be known already, by asking the kernel, since segments are read later than they come. doubt: it may have been made
// after the client left.
func (a *attempt) showsSocket(now uint32, doubt bool) {
	if a.has(inside | late) {
		return
	}
	if a.absent > now {
		a.absent, a.before = a.wasAbsent(now), 0
	}
	a.enter(a.entry(), doubt)
}

// entry is when the socket must have been made: by the first answer to the SYN-ACK, as
// nothing shows that it was dropped, or by the latest segment.
func (a *attempt) entry() uint32 {
	switch {
	case a.has(finished) && a.wasAbsent(a.ended) > a.lastIn:
		return max(a.ended, a.lastIn)
	case a.absent == 0 && a.repeats == 0:
		return a.lastReply + uint32(a.rtt)
	case a.lastIn > a.absent:
		return a.lastIn
	}
	return max(a.absent, a.lastReply)
}

// enter takes in when the socket was made. doubt: that may have been after the client left. Who
// is counted as stalled had left: by its silence, if nothing else shows it.
func (a *attempt) enter(entered uint32, doubt bool) {
	a.entered = max(entered, 1)
	if a.has(shut) && a.letIn() == outcome.Connected { // it was let in at once: its FIN was taken
		a.signs = a.signs&^shut | finished
	}
	absent := a.wasAbsent(a.ended)
	after := a.has(finished) && (entered > a.ended+jiffies || absent > a.lastIn && entered+jiffies >= a.ended)
	if a.has(turnedAway) || doubt && after {
		a.signs |= late
		return
	}
	a.signs |= inside
}

// found takes in a socket of the client, of a moment between two.
func (a *attempt) found(from, now uint32, f *kernel.Found) {
	entered := a.entry()
	if f.Client == kernel.ClientThere || f.Client == kernel.ClientShut {
		a.signs |= there
	}
	if f.HasInfo {
		if f.Received > 0 {
			a.signs |= talked | taking
		} else {
			a.signs |= untaken
		}
		if a.supposed() && a.has(finished) { // its FIN does not tell, as the SYN-ACK was not read
			if f.Sent > 0 && now-min(uint32(f.Quiet/time.Millisecond), now) <= a.ended {
				a.signs |= served
			} else {
				a.signs |= unserved
			}
		}
		switch {
		case f.Sent == 0:
			quiet := uint32(f.Quiet / time.Millisecond)
			made, least := now-min(quiet, now-min(a.lastReply, now)), from-min(quiet, from)
			if least > entered+jiffies || made+jiffies < entered {
				entered = made // else the packet's time is the better one
			}
		case !a.has(finished | left | shut):
			a.signs |= served
		}
	}
	if !a.has(inside | late) {
		a.signs |= answered
		a.enter(entered, true)
	}
}

// ends takes in that a client or the server has ended the connection for good.
func (a *attempt) ends(now uint32, how signs) {
	if a.has(finished|shut) && !a.has(left|closed) && now >= a.ended+waitsFor {
		a.signs |= waited
	}
	a.signs |= how
}

// serverEnded takes in that the server has, be it before the client did.
func (a *attempt) serverEnded(now uint32) {
	if !a.has(finished | shut | left) {
		a.signs |= turnedOut
	}
	a.ends(now, closed)
}

// serverEnds takes in the server's FIN: only a socket sends one.
func (a *attempt) serverEnds(at time.Duration, s *packet.Segment) (deadline time.Duration, ok bool) {
	sent, got := s.Seq-a.serverISN-1+uint32(s.Payload), s.Ack-a.isn-1
	if a.replies == 0 || a.supposed() || sent >= 1<<31 || got >= 1<<31 {
		return 0, false
	}
	if a.has(finished|shut) && got > 0 {
		got-- // its FIN
	}
	if got > 0 {
		a.signs |= talked
	}
	now := mark(a.first, at)
	a.showsSocket(now, true)
	a.signs |= answered
	a.serverEnded(now)
	switch {
	case sent == 0 || a.has(left):
	case !a.has(finished | shut):
		a.signs |= served
	default:
		a.signs |= sentAfter
		return at + rejectedIn + 2*time.Duration(a.rtt)*time.Millisecond, true
	}
	return at, true
}

// isAlert reports whether the server's FIN follows an answer as long as an alert, to a client that sent something and
// had not ended its side: the handshake of TLS has failed, if that is what the port speaks. A FIN that is repeated is no other.
func (a *attempt) isAlert(s *packet.Segment) bool {
	sent, got := s.Seq-a.serverISN-1+uint32(s.Payload), s.Ack-a.isn-1
	return a.replies > 0 && !a.supposed() && sent == outcome.AlertLength && got > 0 && got < maxUpload && !a.has(finished|shut|left|closed|wasReset)
}

// rejectedIn is, beside the network's time, how soon a client that is no longer there answers data with a RST
// (tcp_rcv_state_process, TCP_FIN_WAIT2 and orphans). One that has shut down its side alone (shutdown(2)) takes it.
const rejectedIn = 250 * time.Millisecond

// delay is how much later than its handshake takes a client was let in.
func (a *attempt) delay() time.Duration { return ms(a.entered - min(uint32(a.rtt), a.entered)) }

// letIn is the outcome of one that was.
func (a *attempt) letIn() outcome.Outcome {
	if a.delay() < lateAfter {
		return outcome.Connected
	}
	return outcome.Delayed
}

// leftBefore reports whether a client that was let in late had left before: its FIN follows at once when its data is
// acknowledged, as it had waited for that, be it that the answer has left by then. One without data waits for nothing, nor
// does one whose data comes for the first time.
func (a *attempt) leftBefore(finWithin uint32) bool {
	return a.has(finished) && a.has(talked) && !a.has(received|there) && !a.endsBehind(a.ended) && a.letIn() == outcome.Delayed && a.ended <= a.latest()+finWithin
}

// sendsMore reports whether a client that was let in late sends more than it had by then: what had waited until then follows
// at once, and what comes later comes from a client that was there.
func (a *attempt) sendsMore(s *packet.Segment) bool {
	sent := s.Seq - a.isn - 1
	return s.Payload > 0 && sent > 0 && sent < maxUpload && a.has(inside) && !a.has(there|finished|shut|left) && a.letIn() == outcome.Delayed
}

// latest is what came before its FIN: that it was let in, or what it sent afterwards.
func (a *attempt) latest() uint32 {
	if a.lastIn > a.ended {
		return a.entered
	}
	return max(a.entered, a.lastIn)
}
