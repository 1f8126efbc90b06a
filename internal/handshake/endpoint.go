package handshake

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// Endpoint is what happened to the clients of one address and port of this
// namespace.
type Endpoint struct {
	// Addr is the address that the clients connect to, which need not be the one
	// that a listener is bound to. It is unspecified for those of a namespace
	// with more than maxEndpoints of them.
	Addr netip.AddrPort
	// Clients by Outcome, since the tap was opened.
	Clients [NumOutcomes]uint64
	// LetIn of them had a socket of the kernel while they were there; LetInLate, of the
	// stalled, were given one after they had left. Both together are its PassiveOpens.
	LetIn, LetInLate uint64
	Answers          Answers
	Delays           Delays
	// Responses are those of a sixteenth of the clients, but in the calm.
	Responses Responses
	// Untracked clients came while Options.MaxOpen others were open, or at the moment
	// when what is sent began to be read: how they ended is not known. An estimate.
	Untracked uint64
	// Unanswered SYNs of the clients that are counted above, until one was answered:
	// the listener dropped each, or netfilter did in front of it. Together with the
	// dropped ACKs they are the namespace's ListenDrops.
	Unanswered uint64

	// Open attempts, not yet decided: without a SYN-ACK; with one; with one that
	// is being repeated, or whose answer was not taken when the kernel was asked.
	Waiting, Settling, Stalling int
	// Clients that were let in, of which it is not known yet whether they are answered.
	Inside int
	// Clients that left without having been let in, and whose kernel may still repeat what
	// they sent.
	Left int

	// Troubled is how long ago the youngest of the clients began of which a packet was dropped,
	// as it was repeated, or that was turned away; 0 if there was none. Of others nothing is lost.
	Troubled time.Duration

	// Losers are the addresses from which most clients were turned away, in the
	// last one to two minutes.
	Losers []Source
	// Balancer is the address that most clients come from, if it is one for many
	// of them: a load balancer, a proxy, or a load generator.
	Balancer *Source
	// Proxies are the three addresses at most that four of five clients come from: their
	// attempts are connections of theirs, and not people. Nil where they are more.
	Proxies []Source
	Flood   *Flood

	// Ended says that this is the last report of it: its port is no longer followed. Where
	// it is again, its counts begin at zero.
	Ended bool
}

// Answers say which of the clients that were let in were sent anything by the server.
type Answers struct {
	Answered   uint64
	Unanswered uint64 // sent at least a byte, left or were reset, and had received none
	Checks     uint64 // sent none
	Unknown    uint64
}

// Failed is the number of clients that were turned away.
func (e *Endpoint) Failed() (n uint64) {
	for o := range NumOutcomes {
		if o.Failed() {
			n += e.Clients[o]
		}
	}
	return n
}

// endpoint is the Tracker's account of one.
type endpoint struct {
	addr       packet.Addr
	port       uint16
	clients    [NumOutcomes]uint64
	letIns     uint64
	late       uint64
	answers    Answers
	delays     Delays
	responses  Responses
	untracked  float64
	unanswered uint64
	open       [numStages]int
	trusted    bool          // the kernel has had a socket of one of its clients
	letIn      bool          // somebody
	troubled   time.Duration // when the youngest of the troubled began; 0 for never
	roundTrip  uint32        // of its clients' latest handshakes, the longest of which weigh most: milliseconds
	losers     sources
	callers    sources
	flood      floodWatch
}

// stage is the state of an open attempt.
type stage uint8

const (
	waiting stage = iota
	settling
	stalling
	stageInside // counted, and not known whether it is answered
	stageLeft
	numStages
)

func (a *attempt) stage() stage {
	switch {
	case a.has(counted) && a.has(inside):
		return stageInside
	case a.has(counted):
		return stageLeft
	case a.replies == 0 && !a.unread():
		return waiting
	case a.repeats > 0 || a.absent > 0:
		return stalling
	}
	return settling
}

// trouble takes in that a packet of a client was dropped, or that it was turned away.
func (e *endpoint) trouble(a *attempt) { e.troubled = max(e.troubled, a.first, 1) }

// count counts an attempt that has ended.
func (e *endpoint) count(at time.Duration, a *attempt, o Outcome, hash uint64) {
	e.clients[o]++
	e.letIn = e.letIn || o == Connected || o == Delayed
	switch {
	case a.has(inside):
		e.letIns++
	case a.has(late):
		e.late++
	}
	if o == Delayed {
		e.delays.observe(a.delay())
	}
	e.callers.add(at, &a.client)
	if o.Failed() {
		e.trouble(a)
		e.losers.add(at, &a.client)
	}
	if a.suspicious(o) {
		e.flood.add(at, hash, o == HalfOpen && !a.has(gone))
	}
}

// report also resets what is of the time since the report before.
func (e *endpoint) report(at time.Duration) Endpoint {
	out := Endpoint{
		Addr:    netip.AddrPortFrom(e.addr.Netip(), e.port),
		Clients: e.clients, LetIn: e.letIns, LetInLate: e.late, Answers: e.answers, Delays: e.delays, Responses: e.responses, Untracked: uint64(e.untracked + .5), Unanswered: e.unanswered,
		Waiting: e.open[waiting], Settling: e.open[settling], Stalling: e.open[stalling], Inside: e.open[stageInside], Left: e.open[stageLeft],
		Flood: e.flood.now(at),
	}
	e.delays.Shortest, e.delays.Longest = 0, 0
	if e.troubled > 0 {
		out.Troubled = max(at-e.troubled, 1)
	}
	out.Losers, _ = e.losers.top(at)
	out.Losers = slices.DeleteFunc(out.Losers, func(s Source) bool { return s.Clients == 0 })
	callers, total := e.callers.top(at)
	if len(callers) > 0 && callers[0].Clients >= balancerLeast && callers[0].Clients*balancerFactor >= total {
		out.Balancer = &callers[0]
	}
	out.Proxies = proxies(callers, total)
	return out
}
