package handshake

import (
	"cmp"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/timers"
)

// expired is when a RST that is no socket's answers what the kernel of a client repeats
// that has long left, as its cookie is not valid any more (TCP_SYNCOOKIE_VALID).
const expired = 60_000

// decide says how an attempt ended whose time is over, if it has.
func (t *Tracker) decide(at time.Duration, a *attempt) verdict {
	if a.first+ms(a.lastReply) <= t.narrowed {
		a.signs &^= overheard // the answer may have come when it was not observed any more
	}
	switch {
	case a.has(wasReset) && !a.has(inside) && a.ended > a.lastReply+expired:
		return is(outcome.Stalled)
	case a.has(wasReset):
		return is(outcome.Reset)
	case a.has(refusal):
		return is(outcome.Refused)
	case a.replies == 0:
		return is(outcome.GaveUp)
	case a.has(rejected) && a.repeats > 0 && (a.has(unheard) || !a.has(overheard)):
		return is(outcome.Stalled)
	case a.has(rejected) && a.syns == 1:
		return is(outcome.HalfOpen) // it was answered at once: a scan, or a check of the port that ends with the SYN-ACK
	case a.has(rejected):
		return is(outcome.GaveUp)
	}
	met, taken := kernel.SocketUnknown, time.Duration(0)
	// Of one that has reset its connection the kernel has nothing any more: it is not asked where the counters prove enough.
	ended := a.has(left) && !a.has(inside|late) && t.proofs.taken(at, t.endpoints.of(a).port, a, met)
	if !ended && !t.again && (!a.has(inside|late) || a.pending()) {
		if met = t.inquire(a); met == kernel.Connection {
			taken = t.present
		}
	}
	if !a.has(inside|late) && t.proofs.taken(at, t.endpoints.of(a).port, a, met) {
		a.enter(t.proofs.takenAt(t.endpoints.of(a).port, a), false)
	}
	if a.has(late) && !a.has(turnedAway|counted) && t.proofs.taken(at, t.endpoints.of(a).port, a, kernel.SocketUnknown) {
		a.signs = a.signs&^late | inside // nothing was dropped that it would have had to send again: the ages of sockets were off
		a.entered = max(t.proofs.takenAt(t.endpoints.of(a).port, a), 1)
	}
	switch {
	case a.has(inside):
		return a.admitted(at, taken, t.finWithin(at, a))
	case a.has(late|finished) && !t.again && t.endpoints.of(a).shuts && a.mayStay(at):
		return later(at + max(firstAsk, (at-a.first-ms(a.lastReply))/4))
	case a.has(late):
		return is(outcome.Stalled)
	case t.again && a.absent > 0:
		return a.last()
	case met == kernel.SocketUnknown:
		return t.proofs.unasked(at, a)
	case a.supposed() && a.has(finished|left) && at < a.first+ms(a.lastReply)+timers.First+timers.Slack:
		return later(a.first + ms(a.lastReply) + timers.First + timers.Slack)
	case a.supposed() && a.has(finished|left) && a.repeats == 0:
		return is(outcome.Undecided) // the server's end of it may not have been read
	case a.has(finished):
		return is(outcome.Stalled) // a socket would still be there: only the server ends it
	case a.has(left) && a.wasAbsent(a.ended) > a.lastIn:
		return is(outcome.Stalled)
	case a.has(left):
		return is(outcome.Undecided) // it may have had a socket, which ended with its RST
	}
	return t.open(at, a, met)
}

// proven counts one that has proved that it was let in: the counters have not moved.
func (t *Tracker) proven(at time.Duration, a *attempt) {
	a.enter(a.entry(), false)
	t.finish(at, a)
}

// finWithin is how long after what it had sent was taken a client's FIN comes that could not be sent before: a round trip,
// its own or the others' where its answer to the SYN-ACK was not read, and what its host took longer at times.
func (t *Tracker) finWithin(at time.Duration, a *attempt) uint32 {
	_, more := t.nearest.Least(at, a.client, t.table.hash(&key{client: a.client}))
	if a.local() {
		return max(uint32(more), localFIN)
	}
	return cmp.Or(uint32(a.rtt), t.endpoints.of(a).roundTrip) + max(uint32(more), pendingFIN)
}

// admitted is the outcome of one that was let in. If that was late, the FIN that shows that
// it had left before may be on its way: as late as taken, when the kernel was asked, it may have taken data
// that has yet to be read; 0 if it was not asked.
func (a *attempt) admitted(at, taken time.Duration, finWithin uint32) verdict {
	known := a.first + ms(max(a.entered, a.lastIn)+finWithin) + firstAsk
	switch {
	case a.pending() && at < known+timers.MostData:
		return later(at + firstAsk)
	case a.pending(), a.leftBefore(finWithin): // who repeats nothing for as long has left
		a.signs = a.signs&^inside | late
		return is(outcome.Stalled)
	case a.letIn() == outcome.Delayed && !a.has(received|left|finished):
		if known = max(known, taken+ms(finWithin)); at < known {
			return later(known)
		}
	}
	return is(a.letIn())
}

// open is when to look again at one that has not left and was not let in, or what became
// of it as nothing has come for long.
func (t *Tracker) open(at time.Duration, a *attempt, met kernel.Socket) verdict {
	replied := a.first + ms(a.lastReply)
	repeated := replied + timers.SynAck(a.repeats)
	until := repeated
	switch {
	case a.has(answered | talked):
		last := max(a.lastIn, a.lastReply)
		until = a.first + ms(last) + timers.Data(ms(last), 1)
		if !a.has(talked) {
			until = a.first + ms(last) + timers.MostSYN
		}
		if at >= until && met != kernel.HalfOpenSocket {
			return is(outcome.Stalled)
		}
	case a.has(overheard) && a.silent() == outcome.GaveUp && at >= a.stopped():
		return is(outcome.GaveUp)
	case met == kernel.HalfOpenSocket && at >= repeated:
		until = at + timers.First
	case at >= repeated && a.has(overheard) && a.silent() == outcome.HalfOpen:
		return is(outcome.HalfOpen)
	case at >= repeated && a.has(overheard):
		until = a.stopped()
	case at >= repeated: // a cookie, and its answer may not have been read: it has that long for a sign of life
		if until = replied + timers.MostSYN; at >= until {
			return is(outcome.Undecided)
		}
	}
	// Whoever is let in without a segment that is read is seen so.
	return later(min(max(until, at+tick), at+max(firstAsk, (at-replied)/4)))
}

// finish decides an attempt that has ended, and forgets it.
func (t *Tracker) finish(at time.Duration, a *attempt) {
	if !a.has(counted) {
		v := t.decide(at, a)
		if v.again > 0 {
			v = a.last()
		}
		t.count(at, a, v.outcome)
	}
	t.answer(a)
	t.drop(a)
}

// last is what is known of one of which nothing more will come.
func (a *attempt) last() verdict {
	switch {
	case a.has(inside):
		return is(a.letIn())
	case a.absent > a.lastIn && a.has(answered):
		return is(outcome.Stalled)
	case a.unreached() && a.has(overheard):
		return is(outcome.GaveUp)
	}
	return is(outcome.Undecided)
}

// count gives an attempt its outcome. It stays open until it is known what else became of
// it; keep reports whether it has to.
func (t *Tracker) count(at time.Duration, a *attempt, o outcome.Outcome) (keep bool) {
	e := t.endpoints.of(a)
	if a.unanswered() {
		e.account.Unanswered()
	}
	if o == outcome.Delayed {
		least := min(t.leastRoundTrip(at, a), a.entered-uint32(lateAfter/time.Millisecond)) // it stays Delayed
		a.rtt = max(a.rtt, uint16(least))
	}
	if o == outcome.GaveUp || o == outcome.Refused {
		name := t.name(&key{a.client, a.clientPort, a.endpoint}, a.isn)
		if !t.ended.Add(at, e.port, name, a.first) {
			return false // it was counted before
		}
	}
	e.count(at, a, o, t.table.hash(&key{client: a.client}))
	if a.signs |= counted; o == outcome.Stalled {
		a.signs |= turnedAway
	}
	t.judge(a, o, outcome.NoAnswerKnown)
	return o == outcome.Connected || o == outcome.Delayed || o == outcome.Stalled && !a.has(left)
}
