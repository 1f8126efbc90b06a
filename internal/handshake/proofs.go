package handshake

import (
	"cmp"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/recall"
	"github.com/tcpdiag/tcpdiag/internal/handshake/timers"
)

// verdict is how an attempt ended, or when to look again.
type verdict struct {
	outcome outcome.Outcome
	again   time.Duration // 0 if it is known
}

func is(o outcome.Outcome) verdict      { return verdict{outcome: o} }
func later(again time.Duration) verdict { return verdict{again: again} }

// proofs are what the namespace's counters and timers prove of a client's answer to its SYN-ACK.
type proofs struct {
	retries uint8 // of a SYN-ACK
	cookies recall.Marks
	drops   recall.Drops
}

// taken reports whether the client's answer to its SYN-ACK is known to have been taken: the
// port's listeners have dropped nothing up to then, by counters that were read afterwards; or the
// SYN-ACK was no cookie, and would have been repeated by now (reqsk_timer_handler). A cookie is not: where there is
// no socket, the first of the client that came may be what was read of it, as the network may have lost its answer.
func (p *proofs) taken(at time.Duration, port uint16, a *attempt, met kernel.Socket) bool {
	replied := a.first + ms(a.lastReply)
	if a.repeats > 0 || met == kernel.HalfOpenSocket {
		return false
	}
	sign, came := a.has(answered|finished|left), a.first+ms(max(a.lastIn, a.ended, 1)-1) // a mark is 1 where it came at once
	repeated := replied + timers.First
	by := repeated
	if (met == kernel.OnlyListener || met == kernel.NoSocket || a.has(late)) && !a.has(left) && p.cookies.At(replied) {
		by = max(by, a.first+ms(cmp.Or(a.ended, a.lastIn)))
	}
	if sign && at >= min(came, by) && !p.drops.Between(port, replied, min(at, by)) {
		return true
	}
	return p.retries > 0 && at >= replied+timers.First+timers.Slack && !p.cookies.At(replied) && !a.has(left) && (sign || !a.has(overheard))
}

// takenAt is when the answer was taken: at once where nothing was dropped, else when the client got in. If the kernel
// has had no socket of it since, its connection has ended.
func (p *proofs) takenAt(port uint16, a *attempt) uint32 {
	replied := a.first + ms(a.lastReply)
	if p.drops.Between(port, replied, replied+timers.First) {
		return a.entry()
	}
	return a.lastReply + uint32(a.rtt)
}

// silent is the outcome of one of which nothing came after its SYN-ACK. Who had waited for it while
// SYNs of it were dropped had given up by then: a SYN-ACK that arrives while the client's kernel closes
// the socket is answered by nothing (tcp_rcv_state_process, TCP_CLOSE). So has who never had one.
func (a *attempt) silent() outcome.Outcome {
	if a.has(ignored) || a.unreached() {
		return outcome.GaveUp
	}
	return outcome.HalfOpen
}

// unasked is what the timers of the kernel alone say.
func (p *proofs) unasked(at time.Duration, a *attempt) verdict {
	until := a.first + ms(a.lastReply) + timers.SynAck(a.repeats)
	if a.silent() == outcome.GaveUp && !a.has(answered) && a.has(overheard) {
		until = max(until, a.stopped())
	}
	cookie := p.cookies.At(a.first + ms(a.lastReply))
	switch {
	case a.has(left|finished) && (a.repeats > 0 || p.retries == 0):
		return is(outcome.Stalled)
	case a.has(left | finished):
		return is(outcome.Undecided)
	case at < until:
		return later(until)
	case !a.has(answered) && a.has(overheard):
		return is(a.silent())
	case cookie && a.repeats == 0:
		return is(outcome.Undecided)
	case a.repeats < min(p.retries, leastRetries):
		a.enter(a.entry(), false) // it would have been repeated
		return is(a.letIn())
	case a.has(answered):
		return is(outcome.Stalled)
	}
	return is(outcome.Undecided)
}

// leastRetries is how often a SYN-ACK is repeated, whatever tcp_synack_retries says,
// while half-open clients are many for the backlog (reqsk_timer_handler).
const leastRetries = 2
