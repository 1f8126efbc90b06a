package outcome

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
	// that a listener is bound to. It is the family's unspecified one for all further addresses
	// of a port, on which nothing is known to listen.
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

	// GaveUpUnreached clients, of those that gave up, were sent SYN-ACKs that did not reach them.
	GaveUpUnreached uint64

	// ResetInAnswer clients were reset by the server when they had not acknowledged all that it had sent.
	ResetInAnswer uint64

	// Aborted connections the server ended by a RST of its own; Late are segments that came for connections which it had ended
	// before, and were answered by one.
	Aborted, Late uint64

	// Alerted clients were sent as many bytes as a TLS alert has, before the server ended the connection.
	Alerted uint64

	// TLSBegun clients were seen to begin a TLS handshake.
	TLSBegun uint64

	// TLSEnded clients ended a TLS handshake themselves when they had an answer to their ClientHello.
	TLSEnded uint64

	// Unheard clients were connected, and something in front of their sockets dropped what they sent, or rejected it.
	Unheard uint64

	// Open attempts, not yet decided: without a SYN-ACK; with one; with one that
	// is being repeated, or whose answer was not taken when the kernel was asked; with
	// one, and the client still repeats its SYN.
	Waiting, Settling, Stalling, Unreached int
	// Refused are those of the settling that were answered by a RST: nothing listened.
	Refused int
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
	Closed     uint64 // of these: the server ended the connection
	Checks     uint64 // sent none
	Unknown    uint64
}

// Open is the number of attempts that are not yet decided.
func (e *Endpoint) Open() int { return e.Waiting + e.Settling + e.Stalling + e.Unreached }

// Failed is the number of clients that were turned away.
func (e *Endpoint) Failed() (n uint64) {
	for o := range NumOutcomes {
		if o.Failed() {
			n += e.Clients[o]
		}
	}
	return n
}

// Account counts the clients of one address and port that have ended.
type Account struct {
	clients    [NumOutcomes]uint64
	letIn      uint64
	late       uint64
	unreached  uint64
	inAnswer   uint64
	aborted    uint64
	behind     uint64 // segments that came behind the end of their connection
	alerted    uint64
	aborts     aborts
	answers    Answers
	delays     Delays
	responses  Responses
	untracked  float64
	unanswered uint64
	troubled   time.Duration // when the youngest of the troubled began; 0 for never
	losers     sources
	callers    sources
	flood      floodWatch
}

// Client is what is known of one that has ended.
type Client struct {
	Addr    packet.Addr
	Outcome Outcome
	First   time.Duration // its first SYN
	Delay   time.Duration // of one that was let in
	LetIn   bool          // while it was there
	// Unreached: SYN-ACKs were sent to it, and it repeated its SYN.
	Unreached bool
	// Single: it is one of those that a flood consists of. Hash is that of its address then,
	// and Silent that it was observed not to answer a SYN-ACK.
	Single, Silent bool
	Hash           uint64
}

// Count counts one, once.
func (a *Account) Count(at time.Duration, c *Client) {
	a.clients[c.Outcome]++
	if c.LetIn {
		a.letIn++
	}
	if c.Unreached {
		a.unreached++
	}
	if c.Outcome == Delayed {
		a.delays.observe(c.Delay)
	}
	a.callers.add(at, &c.Addr)
	if c.Outcome.Failed() {
		a.Trouble(c.First)
		a.losers.add(at, &c.Addr)
	}
	if c.Single {
		a.flood.add(at, c.Hash, c.Silent)
	}
}

// LetInLate counts one of the stalled that was given a socket after it had left.
func (a *Account) LetInLate() { a.late++ }

// Stayed corrects one of the stalled that had only ended its side: it was let in, and there. Waited corrects one of the
// unanswered.
func (a *Account) Stayed(as Outcome, delay time.Duration) {
	a.clients[Stalled]--
	a.clients[as]++
	a.letIn++
	if as == Delayed {
		a.delays.observe(delay)
	}
}

// Waited corrects one of the unanswered that had only ended its side.
func (a *Account) Waited() { a.answers.Unanswered-- }

// Untracked counts clients of which it is not known how they ended.
func (a *Account) Untracked(n float64) { a.untracked += n }

// Unanswered counts a SYN that was dropped.
func (a *Account) Unanswered() { a.unanswered++ }

// AlertLength is that of a TLS alert that is not encrypted: the head of a record, and two bytes (RFC 5246, 6.2.1 and 7.2).
const AlertLength = 7

// ServerEnded takes in that the server has ended a connection. alert: its whole answer was as long as a TLS alert.
func (a *Account) ServerEnded(alert bool) {
	if alert {
		a.alerted++
	}
}

// Trouble takes in that a packet of a client which began then was dropped, or that it was turned away.
func (a *Account) Trouble(first time.Duration) { a.troubled = max(a.troubled, first, 1) }

// Responds takes in how long a client of the subset waited for the first byte of its answer.
func (a *Account) Responds(took time.Duration) { a.responses.observe(took) }

// Answer counts whether a client that was let in, and began then, was answered.
func (a *Account) Answer(answer Answer, first time.Duration) {
	switch answer {
	case WasAnswered:
		a.answers.Answered++
	case WasUnanswered:
		a.answers.Unanswered++
		a.Trouble(first)
	case WasClosed:
		a.answers.Unanswered++
		a.answers.Closed++
		a.Trouble(first)
	case WasCheck:
		a.answers.Checks++
	case AnswerUnclear:
		a.answers.Unknown++
	}
}

// Report also resets what is of the time since the report before.
func (a *Account) Report(at time.Duration) Endpoint {
	out := Endpoint{
		Clients: a.clients, LetIn: a.letIn, LetInLate: a.late, GaveUpUnreached: a.unreached, ResetInAnswer: a.inAnswer, Aborted: a.aborted, Late: a.behind, Alerted: a.alerted, Answers: a.answers, Delays: a.delays, Responses: a.responses,
		Untracked: uint64(a.untracked + .5), Unanswered: a.unanswered, Flood: a.flood.now(at),
	}
	a.delays.Shortest, a.delays.Longest = 0, 0
	if a.troubled > 0 {
		out.Troubled = max(at-a.troubled, 1)
	}
	out.Losers, _ = a.losers.top(at)
	out.Losers = slices.DeleteFunc(out.Losers, func(s Source) bool { return s.Clients == 0 })
	callers, total := a.callers.top(at)
	if len(callers) > 0 && callers[0].Clients >= balancerLeast && callers[0].Clients*balancerFactor >= total {
		out.Balancer = &callers[0]
	}
	out.Proxies = proxies(callers, total)
	return out
}
