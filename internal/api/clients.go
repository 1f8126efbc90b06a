package api

import "github.com/tcpdiag/tcpdiag/internal/model"

// Clients are the attempts to connect that were decided within the interval.
// Each client is in exactly one of connected to half_open. They are there where
// TCP handshakes are followed (CAP_NET_RAW).
type Clients struct {
	ObservedSeconds  float64  `json:"observed_seconds"` // part of the interval in which handshakes were followed
	Connected        uint64   `json:"connected"`
	Delayed          uint64   `json:"delayed"` // let in after its SYN or the SYN-ACK was repeated
	GaveUp           uint64   `json:"gave_up"` // a connect timeout
	Stalled          uint64   `json:"stalled"` // believes that it is connected; its ACK was dropped
	Refused          uint64   `json:"refused"` // nothing listened
	Reset            uint64   `json:"reset"`   // by the server, before it sent anything
	HalfOpen         uint64   `json:"half_open"`
	Untracked        uint64   `json:"untracked,omitempty"`          // an estimate: how they ended is not known, as too many came at a time, or all was calm until then
	Waiting          int      `json:"waiting"`                      // not decided: nothing has answered yet
	Stalling         int      `json:"stalling"`                     // not decided: the SYN-ACK is being repeated
	DelayMeanSeconds *float64 `json:"delay_mean_seconds,omitempty"` // of the delayed
	DelayMinSeconds  *float64 `json:"delay_min_seconds,omitempty"`
	DelayMaxSeconds  *float64 `json:"delay_max_seconds,omitempty"`
	PacketsLost      uint64   `json:"packets_lost,omitempty"` // could not be read: outcomes may be wrong by as many

	Losers   []ClientSource `json:"losers,omitempty"`   // addresses from which most were turned away lately
	Balancer *ClientSource  `json:"balancer,omitempty"` // one address of at least every second client
	Flood    *ClientFlood   `json:"flood,omitempty"`
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
		Connected:       c.Outcomes[model.ClientConnected],
		Delayed:         c.Outcomes[model.ClientDelayed],
		GaveUp:          c.Outcomes[model.ClientGaveUp],
		Stalled:         c.Outcomes[model.ClientStalled],
		Refused:         c.Outcomes[model.ClientRefused],
		Reset:           c.Outcomes[model.ClientReset],
		HalfOpen:        c.Outcomes[model.ClientHalfOpen],
		Untracked:       c.Untracked,
		Waiting:         c.Waiting,
		Stalling:        c.Stalling,
		PacketsLost:     c.PacketsLost,
	}
	if c.Delays.Count > 0 {
		out.DelayMeanSeconds = new(c.Delays.Sum / float64(c.Delays.Count))
	}
	if c.Delays.Count > 0 && c.Waits.Longest > 0 {
		out.DelayMinSeconds, out.DelayMaxSeconds = new(c.Waits.Shortest.Seconds()), new(c.Waits.Longest.Seconds())
	}
	for _, s := range c.Losers {
		out.Losers = append(out.Losers, ClientSource{s.Addr.String(), s.Clients})
	}
	if c.Balancer != nil {
		out.Balancer = &ClientSource{c.Balancer.Addr.String(), c.Balancer.Clients}
	}
	if c.Flood != nil {
		out.Flood = &ClientFlood{c.Flood.Attempts, c.Flood.Sources, c.Flood.Period.Seconds(), c.Flood.Certain}
	}
	return out
}
