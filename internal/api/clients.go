package api

import "github.com/tcpdiag/tcpdiag/internal/model"

// Clients are the attempts to connect that were decided within the interval.
// Each client is in exactly one of connected to undecided. They are there where
// TCP handshakes are followed (CAP_NET_RAW).
type Clients struct {
	ObservedSeconds float64 `json:"observed_seconds"` // part of the interval in which handshakes were followed

	// An outcome that a short look cannot know yet is left out.
	Connected       *uint64 `json:"connected,omitempty"`         // let in
	Delayed         *uint64 `json:"delayed,omitempty"`           // let in late
	GaveUp          *uint64 `json:"gave_up,omitempty"`           // a connect timeout
	GaveUpUnreached uint64  `json:"gave_up_unreached,omitempty"` // of these: were sent SYN-ACKs, which did not reach them
	ResetInAnswer   uint64  `json:"reset_in_answer,omitempty"`   // let in, and reset by the server when they had not acknowledged all that it had sent
	Alerted         uint64  `json:"alerted,omitempty"`           // let in, and the server ended the connection behind 7 bytes, the length of a TLS alert: with TLS, their handshake failed
	TLSEnded        uint64  `json:"tls_ended,omitempty"`         // let in, and ended a TLS handshake themselves when they had the server's answer: mostly they do not trust its certificate
	Unheard         uint64  `json:"unheard,omitempty"`           // connected, and something in front of their sockets dropped what they sent, or rejected it
	Stalled         *uint64 `json:"stalled,omitempty"`           // believed that it was connected, and left without having been let in
	Refused         *uint64 `json:"refused,omitempty"`           // nothing listened
	Reset           *uint64 `json:"reset,omitempty"`             // by the server, before it sent anything
	HalfOpen        *uint64 `json:"half_open,omitempty"`
	Undecided       *uint64 `json:"undecided,omitempty"` // no proof settled how it ended

	LetIn      *uint64 `json:"let_in,omitempty"`           // had a socket of the server's kernel while they were there: connected, delayed, and some of reset
	LetInLate  uint64  `json:"let_in_late,omitempty"`      // were given a socket after they had left; part of stalled
	Answered   *uint64 `json:"answered,omitempty"`         // let in, and the server sent something
	Unanswered *uint64 `json:"unanswered,omitempty"`       // let in, sent something and received nothing: a read timeout inside, or the server closed
	Closed     uint64  `json:"closed_by_server,omitempty"` // of unanswered: the server ended the connection
	Checks     *uint64 `json:"checks,omitempty"`           // let in, and sent nothing
	Unclear    uint64  `json:"answer_unclear,omitempty"`   // let in, and it was not seen what they had received
	WhyNot     string  `json:"answers_unknown,omitempty"`  // why answered and checks are left out; and unanswered, but where those are counted that were sent no byte
	TurnedAway *uint64 `json:"turned_away,omitempty"`      // gave_up, stalled, refused, reset and unanswered together

	Untracked        uint64   `json:"untracked,omitempty"`          // an estimate: how they ended is not known, as too many came at a time, or all was calm until then
	Waiting          int      `json:"waiting"`                      // not decided: nothing has answered yet
	Settling         int      `json:"settling,omitempty"`           // not decided: answered, most by a SYN-ACK
	Stalling         int      `json:"stalling"`                     // not decided: the ACK was dropped
	Unreached        int      `json:"unreached,omitempty"`          // not decided: sent SYN-ACKs, and repeats its SYN
	DelayMeanSeconds *float64 `json:"delay_mean_seconds,omitempty"` // of the delayed
	DelayMinSeconds  *float64 `json:"delay_min_seconds,omitempty"`
	DelayMaxSeconds  *float64 `json:"delay_max_seconds,omitempty"`
	Estimated        bool     `json:"estimated,omitempty"`    // those let in are not as many as the kernel's sockets
	PacketsLost      uint64   `json:"packets_lost,omitempty"` // could not be read: outcomes may be wrong by as many

	FirstResponse *FirstResponse `json:"first_response,omitempty"`

	Losers   []ClientSource `json:"losers,omitempty"`   // addresses from which most were turned away lately
	Balancer *ClientSource  `json:"balancer,omitempty"` // one address of at least every second client
	Proxies  []ClientSource `json:"proxies,omitempty"`  // up to three addresses of four of five clients: connections of theirs
	Flood    *ClientFlood   `json:"flood,omitempty"`
}

// outcomes fills in those that are known.
func (out *Clients) outcomes(c *model.Clients) {
	all := true
	for o, field := range map[model.ClientOutcome]**uint64{
		model.ClientConnected: &out.Connected, model.ClientDelayed: &out.Delayed, model.ClientGaveUp: &out.GaveUp,
		model.ClientStalled: &out.Stalled, model.ClientRefused: &out.Refused, model.ClientReset: &out.Reset,
		model.ClientHalfOpen: &out.HalfOpen, model.ClientUndecided: &out.Undecided,
	} {
		if c.Knows(o) {
			*field = new(c.Outcomes[o])
		} else {
			all = false
		}
	}
	if all {
		out.TurnedAway = new(c.TurnedAway())
	}
	if c.Knows(model.ClientConnected) {
		out.LetIn, out.LetInLate = new(c.LetIn), c.LetInLate
	}
	if a := c.Answers; a.Known {
		out.Answered, out.Unanswered, out.Checks = new(a.Answered), new(a.Unanswered), new(a.Checks)
		out.Closed, out.Unclear = a.Closed, a.Unclear
	} else {
		out.WhyNot = a.Why
		if a.Least {
			out.Unanswered, out.Closed = new(a.Unanswered), a.Closed
		}
	}
}

// FirstResponse is how long clients waited for the first byte of an answer, from their first
// SYN on, queues included: of a sixteenth of the clients, and of none while a busy server is
// calm. A quantile beyond 30 s is left out.
type FirstResponse struct {
	Clients     uint64  `json:"clients"` // of which it is known
	MeanSeconds float64 `json:"mean_seconds"`
	P50Seconds  float64 `json:"p50_seconds,omitempty"`
	P95Seconds  float64 `json:"p95_seconds,omitempty"`
	P99Seconds  float64 `json:"p99_seconds,omitempty"`
}

// ClientSource is an address that clients come from.
type ClientSource struct {
	Address string `json:"address"`
	Clients uint64 `json:"clients"`
}

// ClientFlood is a SYN flood with spoofed addresses.
type ClientFlood struct {
	Attempts      uint64  `json:"attempts"`
	Addresses     uint64  `json:"addresses"` // an estimate
	PeriodSeconds float64 `json:"period_seconds"`
	Certain       bool    `json:"certain"` // else they may be clients with a connect timeout below a second
}

func newClients(l *model.Losses) *Clients {
	if l == nil || l.Clients == nil {
		return nil
	}
	c := l.Clients
	out := &Clients{
		ObservedSeconds: c.Observed.Seconds(),
		Untracked:       c.Untracked,
		Waiting:         c.Waiting, Settling: c.Settling, Stalling: c.Stalling,
		Unreached: c.Unreached, GaveUpUnreached: c.GaveUpUnreached, ResetInAnswer: c.ResetInAnswer, Alerted: c.Alerted, TLSEnded: c.TLSEnded, Unheard: c.Unheard,
		Estimated:   c.Estimated,
		PacketsLost: c.PacketsLost,
	}
	out.outcomes(c)
	if c.Delays.Count > 0 {
		out.DelayMeanSeconds = new(c.Delays.Sum / float64(c.Delays.Count))
	}
	if c.Delays.Count > 0 && c.Waits.Longest > 0 {
		out.DelayMinSeconds, out.DelayMaxSeconds = new(c.Waits.Shortest.Seconds()), new(c.Waits.Longest.Seconds())
	}
	for _, s := range c.Losers {
		out.Losers = append(out.Losers, ClientSource{s.Addr.String(), s.Clients})
	}
	out.FirstResponse = (*FirstResponse)(c.FirstBytes())
	for _, s := range c.Proxies {
		out.Proxies = append(out.Proxies, ClientSource{s.Addr.String(), s.Clients})
	}
	if c.Balancer != nil {
		out.Balancer = &ClientSource{c.Balancer.Addr.String(), c.Balancer.Clients}
	}
	if c.Flood != nil {
		out.Flood = &ClientFlood{c.Flood.Attempts, c.Flood.Sources, c.Flood.Period.Seconds(), c.Flood.Certain}
	}
	return out
}
