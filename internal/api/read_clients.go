package api

import (
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func (c *Clients) model() *model.Clients {
	if c == nil {
		return nil
	}
	out := &model.Clients{
		Observed: period(c.ObservedSeconds), Waiting: c.Waiting, Settling: c.Settling, Stalling: c.Stalling,
		Unreached: c.Unreached, Estimated: c.Estimated, PacketsLost: c.PacketsLost,
	}
	out.Unheard, out.Alerted, out.TLSEnded = c.Unheard, c.Alerted, c.TLSEnded
	out.Untracked, out.GaveUpUnreached, out.ResetInAnswer, out.LetInLate, out.LetIn = c.Untracked, c.GaveUpUnreached, c.ResetInAnswer, c.LetInLate, counted(c.LetIn)
	for o, n := range map[model.ClientOutcome]*uint64{
		model.ClientConnected: c.Connected, model.ClientDelayed: c.Delayed, model.ClientGaveUp: c.GaveUp,
		model.ClientStalled: c.Stalled, model.ClientRefused: c.Refused, model.ClientReset: c.Reset,
		model.ClientHalfOpen: c.HalfOpen, model.ClientUndecided: c.Undecided,
	} {
		out.Outcomes[o] = counted(n)
	}
	out.Answers = model.ClientAnswers{
		Known: c.Answered != nil, Least: c.Answered == nil && c.Unanswered != nil, Why: c.WhyNot, Unclear: c.Unclear,
		Answered: counted(c.Answered), Unanswered: counted(c.Unanswered), Closed: c.Closed, Checks: counted(c.Checks),
	}
	if mean := c.DelayMeanSeconds; mean != nil {
		out.Delays.Count, out.Delays.Sum = counted(c.Delayed), *mean*float64(counted(c.Delayed))
	}
	if c.DelayMinSeconds != nil && c.DelayMaxSeconds != nil {
		out.Waits = model.Waits{Shortest: period(*c.DelayMinSeconds), Longest: period(*c.DelayMaxSeconds)}
	}
	out.ReportedFirstBytes = (*model.FirstBytes)(c.FirstResponse)
	out.Losers, out.Proxies = sourcesOf(c.Losers), sourcesOf(c.Proxies)
	if c.Balancer != nil {
		out.Balancer = &sourcesOf([]ClientSource{*c.Balancer})[0]
	}
	if f := c.Flood; f != nil {
		out.Flood = &model.ClientFlood{Attempts: f.Attempts, Sources: f.Addresses, Period: period(f.PeriodSeconds), Certain: f.Certain}
	}
	return out
}

// counted is a count, 0 where it is left out: that nothing is known of it shows in the open
// attempts (model.Clients.Knows).
func counted(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func sourcesOf(in []ClientSource) (out []model.ClientSource) {
	for _, s := range in {
		a, _ := netip.ParseAddr(s.Address)
		out = append(out, model.ClientSource{Addr: a, Clients: s.Clients})
	}
	return out
}
