package handshake

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/timers"
)

const (
	// halfClosed is how soon after it was let in, or what it sent then, a client ends its side that may still wait
	// for an answer (shutdown(2) after the request), and halfPatience how long it may.
	halfClosed   = 200
	halfPatience = 60 * time.Second
	// answerMost is the longest time between two questions whether a client was answered.
	answerMost = 30 * time.Second
	// unaskedMost is how long one is followed of which nothing comes, and after whose socket nobody can be asked.
	unaskedMost = 30 * time.Minute
)

// follow looks after one whose outcome is known: whether it is answered, or is given a
// socket though it has left. It returns when to look again, or done.
func (t *Tracker) follow(at time.Duration, a *attempt) (again time.Duration, done bool) {
	if !a.has(inside) {
		return t.followLeft(at, a)
	}
	if a.has(finished) && !a.has(served|unserved|left|closed) && (a.supposed() || a.local()) {
		t.inquire(a)
	}
	shuts := t.endpoints.of(a).shuts
	if !a.answerKnown(at, shuts) {
		met := t.inquire(a)
		if met != kernel.Connection && met != kernel.SocketUnknown && !a.has(finished|left) {
			if !a.has(awaited) { // its end, as segments are read later than they come
				a.signs |= awaited
				return at + 2*firstAsk, false
			}
			t.answer(a) // its end was not seen
			return 0, true
		}
		if met == kernel.SocketUnknown && at >= a.first+ms(max(a.lastIn, a.lastReply, a.ended))+unaskedMost {
			return 0, true
		}
	}
	switch known := a.answerKnown(at, shuts); {
	case known && t.moreToCome(a):
		a.signs |= awaited
		return at + 2*firstAsk, false
	case known:
		if t.answer(a); !a.mayStay(at) {
			return 0, true
		}
		a.signs |= turnedAway
	}
	a.asks = inc(a.asks)
	return at + min(firstAsk<<min(a.asks, 10), answerMost), false
}

// moreToCome reports whether the packet with the first byte of a sampled client's answer may not have been read, as it is
// the kernel that says that the byte was sent; or a SYN that was repeated before, which would be taken for another client's.
func (t *Tracker) moreToCome(a *attempt) bool {
	known := a.has(timed|awaited|received|finished|left|closed) || a.supposed() || t.unread.On
	return !known && a.has(served) && (t.present >= a.first+timers.First || packet.InSubset(a.clientPort, t.endpoints.of(a).port))
}

// answerKnown reports whether it is known if the client got an answer. shuts: others wait for theirs that have ended their side.
func (a *attempt) answerKnown(at time.Duration, shuts bool) bool {
	switch {
	case a.has(served):
		return true
	case a.has(left | closed):
		return true
	case !a.has(finished):
		return false
	case !a.has(talked) || !shuts && a.ended > a.latest()+halfClosed:
		return true
	}
	return at >= a.first+ms(a.ended)+halfPatience
}

// followLeft looks after one that left without having been let in, as long as its kernel may repeat what it sent.
func (t *Tracker) followLeft(at time.Duration, a *attempt) (again time.Duration, done bool) {
	met := kernel.SocketUnknown
	if !a.has(late | closed) {
		met = t.inquire(a)
	}
	last := max(a.lastIn, a.lastReply, a.ended)
	switch {
	case a.has(late) && a.mayStay(at): // what it does with an answer tells
	case a.has(late):
		t.judge(a, outcome.Stalled, outcome.NoAnswerKnown)
		return 0, true
	case a.has(closed | left):
		return 0, true // by a RST that no socket sent, or the client's
	case at >= a.first+ms(last)+timers.Data(ms(last), 4) && met != kernel.HalfOpenSocket:
		return 0, true
	}
	a.asks = inc(a.asks)
	return at + min(firstAsk<<min(a.asks, 10), answerMost/2), false
}

// mayStay reports whether what a client does with its answer may show that it has only ended its side, be it late: it takes it.
// One that has left rejects it. On the loopback its own socket has told.
func (a *attempt) mayStay(at time.Duration) bool {
	stays := a.has(finished) && a.has(talked) && !a.has(left|closed|served) && !a.supposed() && !a.local()
	return stays && at < a.first+ms(max(a.ended, a.entered))+halfPatience
}

// takes takes in that a client takes its answer though it had ended its side. What was counted is corrected.
func (t *Tracker) takes(a *attempt) {
	e := t.endpoints.of(a)
	e.shuts = true
	if !a.has(late) {
		return
	}
	a.signs = a.signs&^late | inside
	if a.has(turnedAway) {
		e.account.Stayed(a.letIn(), a.delay())
		a.signs &^= turnedAway
	}
}

// answer counts whether a client that was let in was answered.
func (t *Tracker) answer(a *attempt) {
	answer, account := a.answer(), &t.endpoints.of(a).account
	switch {
	case answer == outcome.WasAnswered && a.has(turnedAway):
		account.Waited()
	case answer == outcome.NoAnswerKnown, a.has(turnedAway):
		return
	}
	account.Answer(answer, a.first)
	t.judge(a, a.letIn(), answer)
}

// leftAtOnceIn is how soon after it was let in, without a delay, a client ends its connection that never waited
// for an answer, whatever it has sent: a balancer's check of the port behind the PROXY protocol's line.
const leftAtOnceIn = 10

// leftAtOnce: and it took no answer afterwards, as one does that has only shut down its side, nor had to wait for one, nor
// did the server end the connection, as one that has no room for the request.
func (a *attempt) leftAtOnce() bool {
	return a.has(left|closed) && !a.has(waited|turnedOut) && a.letIn() == outcome.Connected && a.ended > 0 && a.ended <= a.entered+uint32(a.rtt)+leftAtOnceIn
}

// answer is known when nothing more of a client is awaited.
func (a *attempt) answer() outcome.Answer {
	switch {
	case !a.has(inside) || a.has(wasReset):
		return outcome.NoAnswerKnown
	case a.has(served), a.has(sentAfter) && !a.has(left|turnedAway): // it did not reject what came after its FIN
		return outcome.WasAnswered
	case a.supposed() && !a.has(talked|finished), !a.has(finished | left | closed):
		return outcome.AnswerUnclear
	case !a.has(talked), a.leftAtOnce():
		return outcome.WasCheck
	case a.supposed() && !a.has(unserved):
		return outcome.AnswerUnclear
	case a.has(turnedOut):
		return outcome.WasClosed
	}
	return outcome.WasUnanswered
}
