package clients

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/clients/accounts"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/handshake"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/tap"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// namespace is one network namespace.
type namespace struct {
	netns  uint64
	number uint64 // they count up
	tap    Tap    // nil where it could not be opened
	report *reported
	err    error // why
	tried  time.Time
	opened time.Time

	looked       bool // its listeners were seen before
	lost         uint64
	conservation conservation
	last         map[netip.AddrPort]model.ClientTotals // of each endpoint, as last reported
	accounts     map[netip.AddrPort]*account           // of each listener; of a port without one under the zero address
}

// reported is what a tap has reported; nil once it is added to the accounts.
type reported struct {
	tap.Report
	alone bool // Tap.Alone
}

// account is what a listener's clients came to so far.
type account struct {
	accounts.Account
	inode uint32 // of the listener
}

func newNamespace(netns, number uint64) *namespace {
	return &namespace{netns: netns, number: number, last: make(map[netip.AddrPort]model.ClientTotals), accounts: make(map[netip.AddrPort]*account)}
}

func (p *namespace) close() {
	if p.tap != nil {
		_ = p.tap.Close()
	}
}

// count gives the listeners what the tap has reported since the last time.
func (p *namespace) count(v *facts.View) {
	report := p.report
	if report == nil {
		return
	}
	p.report = nil
	p.conservation.check(&report.Report, report.alone, p.opened, v.Time)
	for _, a := range p.accounts {
		a.Latest = model.Clients{}
	}
	listening := p.listeners(v)
	last := make(map[netip.AddrPort]model.ClientTotals, len(report.Endpoints))
	for i := range report.Endpoints {
		e := &report.Endpoints[i]
		if p.book(e, listening, v.Time); !e.Ended {
			last[e.Addr] = highest(totals(e), p.last[e.Addr])
		}
	}
	p.last, p.lost = last, report.Lost
	p.forget(v)
	for _, a := range p.accounts {
		a.Remember(v.Time, v.Interval(), p.lost)
	}
}

// facts are what is known by now.
func (p *namespace) facts(v *facts.View) *accounts.Namespace {
	if p.tap == nil {
		return &accounts.Namespace{}
	}
	for _, w := range v.Watchlist.In(p.netns) { // their series exist from the start
		p.account(w.ID.Address)
		p.account(accounts.Port(w.Port()))
	}
	for _, t := range v.Watchlist.Targets {
		if t.NetNS == p.netns {
			p.account(accounts.Port(t.Port))
		}
	}
	out := &accounts.Namespace{
		Followed: true, Opened: p.opened, Observed: v.Time.Sub(p.opened) - handshake.Lag, Lost: p.lost,
		Broken: p.conservation.broken, Elsewhere: p.conservation.elsewhere(), Accounts: make(map[netip.AddrPort]*accounts.Account, len(p.accounts)),
	}
	for addr, a := range p.accounts {
		out.Accounts[addr] = new(a.Account)
	}
	return out
}

// listeners are the addresses on which something listens here.
func (p *namespace) listeners(v *facts.View) (out []netip.AddrPort) {
	for _, w := range v.Watchlist.In(p.netns) {
		out = append(out, w.ID.Address)
		a, inode := p.account(w.ID.Address), w.Worst().Inode
		if p.looked && a.inode != inode {
			a.Since = v.Time
		}
		a.inode = inode
	}
	p.looked = true
	return out
}

// forget drops the accounts of which the snapshot has nothing: closed listeners whose totals are no
// longer kept, and their ports. So there are
// never more than the snapshot is bounded to, however many addresses a stranger listens on.
func (p *namespace) forget(v *facts.View) {
	known := make(map[netip.AddrPort]bool)
	add := func(addr netip.AddrPort) { known[addr], known[accounts.Port(addr.Port())] = true, true }
	for _, w := range v.Watchlist.In(p.netns) {
		add(w.ID.Address)
	}
	for i := range v.Retained {
		if id := &v.Retained[i].ID; id.NetNS == p.netns {
			add(id.Address)
		}
	}
	for _, t := range v.Watchlist.Targets {
		if t.NetNS == p.netns {
			add(accounts.Port(t.Port))
		}
	}
	maps.DeleteFunc(p.accounts, func(addr netip.AddrPort, _ *account) bool { return !known[addr] })
}

// uneasy reports whether clients of a listener are being turned away or may be soon: it is
// down, it loses some, or they stand in its queue.
func uneasy(l *model.Listener) bool {
	q := l.AcceptQueue
	return !l.Listening() || l.Verdict.Status >= model.StatusLosing ||
		q != nil && (2*q.Recent > q.Limit || q.Length > 0 && l.Verdict.Status >= model.StatusSaturated)
}

func (p *namespace) account(of netip.AddrPort) *account {
	a := p.accounts[of]
	if a == nil {
		a = &account{}
		a.Before, a.Totals.Delays.Bounds = p.lost, outcome.DelayBounds()
		p.accounts[of] = a
	}
	return a
}

// book gives what an endpoint has counted since the last report to the listener
// that its clients met. Refused ones met none: they have begun at the port.
func (p *namespace) book(e *outcome.Endpoint, listening []netip.AddrPort, at time.Time) {
	now := totals(e)
	before := p.last[e.Addr]
	delta := now.Sub(before)
	delta.Withdrawn = before.Begun - min(before.Begun, now.Begun)
	refused := model.ClientTotals{Begun: delta.Outcomes[model.ClientRefused]}
	refused.Outcomes[model.ClientRefused] = delta.Outcomes[model.ClientRefused]
	delta.Outcomes[model.ClientRefused] = 0

	port := p.account(accounts.Port(e.Addr.Port()))
	if refused.Outcomes[model.ClientRefused] > 0 {
		port.Refused = at
		if !e.Addr.Addr().IsUnspecified() {
			port.RefusedAt = e.Addr
		}
	}
	a := port
	if met, ok := mostSpecific(e.Addr, listening); ok {
		a = p.account(met)
	} else if met, ok := mostSpecific(e.Addr, p.previous()); ok {
		a = p.account(met) // an attempt is decided after its last packet, and the listener may have closed
	} else {
		waited := min(delta.Withdrawn, refused.Begun) // they have begun there already
		delta.Withdrawn, refused.Begun = delta.Withdrawn-waited, refused.Begun-waited
	}
	port.Totals = port.Totals.Add(refused)
	a.Totals = a.Totals.Add(delta)
	a.Waits = a.Waits.And(model.Waits{Shortest: e.Delays.Shortest, Longest: e.Delays.Longest})
	a.state(e)
	// What is reported is as of up to that long ago, and the client began no later.
	if began := at.Add(-e.Troubled - handshake.Lag); e.Troubled > 0 && began.After(a.Troubled) {
		a.Troubled = began
	}
}

// previous are the addresses on which a closed listener was seen.
func (p *namespace) previous() (out []netip.AddrPort) {
	for addr := range p.accounts {
		if addr.Addr().IsValid() {
			out = append(out, addr)
		}
	}
	return out
}

// mostSpecific is the listener that the kernel gives a connection to: the one
// bound to the address, else the family's wildcard, else [::]
// (compute_score in net/ipv4/inet_hashtables.c).
func mostSpecific(to netip.AddrPort, listening []netip.AddrPort) (best netip.AddrPort, ok bool) {
	score := 0
	for _, l := range listening {
		s := 0
		switch addr := l.Addr(); {
		case l.Port() != to.Port():
		case addr == to.Addr():
			s = 3
		case addr.IsUnspecified() && addr.Is4() == to.Addr().Is4():
			s = 2
		case addr == netip.IPv6Unspecified():
			s = 1
		}
		if s > score {
			best, score = l, s
		}
	}
	return best, score > 0
}

// state takes in what an endpoint says of this moment.
func (a *account) state(e *outcome.Endpoint) {
	c := &a.Latest
	c.Waiting += e.Waiting
	c.Settling += e.Settling
	c.Stalling += e.Stalling
	c.Unreached += e.Unreached
	c.Losers = sources(c.Losers, e.Losers)
	if e.Balancer != nil && (c.Balancer == nil || e.Balancer.Clients > c.Balancer.Clients) {
		c.Balancer = new(model.ClientSource(*e.Balancer))
	}
	if len(e.Proxies) > 0 {
		c.Proxies = sources(c.Proxies, e.Proxies)
	}
	if e.Flood != nil && (c.Flood == nil || e.Flood.Attempts > c.Flood.Attempts) {
		c.Flood = new(model.ClientFlood(*e.Flood))
	}
}

func totals(e *outcome.Endpoint) model.ClientTotals {
	t := model.ClientTotals{Outcomes: e.Clients, Untracked: e.Untracked} // the outcomes are the same, in the same order
	t.LetIn, t.LetInLate, t.GaveUpUnreached, t.ResetInAnswer = e.LetIn, e.LetInLate, e.GaveUpUnreached, e.ResetInAnswer
	t.Aborted, t.Late, t.TLSBegun = e.Aborted, e.Late, e.TLSBegun
	t.Unheard, t.Alerted, t.TLSEnded = e.Unheard, e.Alerted, e.TLSEnded
	t.Begun = uint64(e.Open() - e.Refused)
	for _, n := range e.Clients {
		t.Begun += n
	}
	t.Begun -= e.Clients[outcome.Refused] // see book
	t.Answers = model.ClientAnswers{Answered: e.Answers.Answered, Unanswered: e.Answers.Unanswered, Closed: e.Answers.Closed, Checks: e.Answers.Checks, Unclear: e.Answers.Unknown}
	t.Delays = model.ConnectDelays{
		Count: e.Delays.Count, Sum: e.Delays.Sum, Bounds: outcome.DelayBounds(), Buckets: e.Delays.Buckets(),
	}
	t.Responses = model.FirstResponses{
		Count: e.Responses.Count, Sum: e.Responses.Sum, Bounds: outcome.ResponseBounds(), Buckets: e.Responses.Buckets(),
	}
	return t
}

// highest is what was told of an endpoint by now. Clients that were counted as turned away may turn out to have waited, and to be
// answered: totals do not fall, so the next ones that are turned away make up for these.
func highest(now, before model.ClientTotals) model.ClientTotals {
	for o := range now.Outcomes {
		now.Outcomes[o] = max(now.Outcomes[o], before.Outcomes[o])
	}
	now.Answers.Unanswered = max(now.Answers.Unanswered, before.Answers.Unanswered)
	return now
}

// sources merges what the endpoints of one listener say.
func sources(into []model.ClientSource, more []outcome.Source) []model.ClientSource {
	for _, s := range more {
		if i := slices.IndexFunc(into, func(c model.ClientSource) bool { return c.Addr == s.Addr }); i >= 0 {
			into[i].Clients += s.Clients
			continue
		}
		into = append(into, model.ClientSource(s))
	}
	slices.SortStableFunc(into, func(a, b model.ClientSource) int { return cmp.Compare(b.Clients, a.Clients) })
	return into[:min(len(into), 5)]
}
