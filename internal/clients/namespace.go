package clients

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

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

// account is what a listener's clients came to.
type account struct {
	refusedAt netip.AddrPort // where the latest of the refused asked; of a port's account
	refused   time.Time      // when that was counted
	inode     uint32         // of the listener
	since     time.Time      // when it was first seen; zero if it was there before
	totals    model.ClientTotals
	waits     model.Waits // since the latest of past
	past      []mark      // of the interval of a snapshot: when the totals had changed
	latest    model.Clients
	recents   []trouble
	away      away
	quiet     quiet
	troubled  time.Time // when the youngest of the clients began that were in trouble
	plain     bool      // its answers are known
	unseen    time.Time // since when SYNs were dropped of which no handshake was seen; zero for never
}

// decidedIn is how long after its last packet a client's refusal is counted at the latest, on a busy machine, too.
const decidedIn = 2 * time.Second

type mark struct {
	at     time.Time
	totals model.ClientTotals
	lost   uint64      // packets of the namespace
	waits  model.Waits // since the mark before
}

func newNamespace(netns, number uint64) *namespace {
	return &namespace{netns: netns, number: number, last: make(map[netip.AddrPort]model.ClientTotals), accounts: make(map[netip.AddrPort]*account)}
}

func (p *namespace) close() {
	if p.tap != nil {
		_ = p.tap.Close()
	}
}

// add gives the listeners what the tap has reported since the last time.
func (p *namespace) add(base *model.Snapshot) {
	report := p.report
	if report == nil {
		return
	}
	p.report, p.lost = nil, report.Lost
	p.conservation.check(&report.Report, report.alone, p.opened, base.Time)
	for _, a := range p.accounts {
		a.latest = model.Clients{}
	}
	listening := p.listeners(base)
	last := make(map[netip.AddrPort]model.ClientTotals, len(report.Endpoints))
	for i := range report.Endpoints {
		e := &report.Endpoints[i]
		if p.book(e, listening, base.Time); !e.Ended {
			last[e.Addr] = totals(e)
		}
	}
	p.last = last
	p.forget(base)
	for _, a := range p.accounts {
		a.remember(base.Time, base.Interval, p.lost)
	}
}

// listeners are the addresses on which something listens here.
func (p *namespace) listeners(base *model.Snapshot) (out []netip.AddrPort) {
	for i := range base.Listeners {
		if l := &base.Listeners[i]; l.ID.NetNS == p.netns && l.Listening() {
			out = append(out, l.ID.Address)
			a := p.account(l.ID.Address) // its series exist from the start
			if p.looked && a.inode != l.Inode {
				a.since = base.Time
			}
			a.inode = l.Inode
		}
	}
	p.looked = true
	return out
}

func portOnly(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.Addr{}, port) }

// forget drops the accounts of which the snapshot has nothing: closed listeners whose totals are no
// longer kept, and their ports. So there are
// never more than the snapshot is bounded to, however many addresses a stranger listens on.
func (p *namespace) forget(base *model.Snapshot) {
	known := make(map[netip.AddrPort]bool)
	add := func(netns uint64, addr netip.AddrPort, port uint16) {
		if netns == p.netns {
			known[addr], known[portOnly(port)] = true, true
		}
	}
	for i := range base.Listeners {
		l := &base.Listeners[i]
		add(l.ID.NetNS, l.ID.Address, l.Port)
	}
	for i := range base.Retired {
		id := &base.Retired[i].ID
		add(id.NetNS, id.Address, id.Address.Port())
	}
	for i := range base.Targets {
		t := &base.Targets[i]
		add(t.NetNS, portOnly(t.Port), t.Port)
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
		a.totals.Delays.Bounds = outcome.DelayBounds()
		p.accounts[of] = a
	}
	return a
}

// book gives what an endpoint has counted since the last report to the listener
// that its clients met. Refused ones met none.
func (p *namespace) book(e *outcome.Endpoint, listening []netip.AddrPort, at time.Time) {
	now := totals(e)
	delta := now.Sub(p.last[e.Addr])
	refused := model.ClientTotals{}
	refused.Outcomes[model.ClientRefused] = delta.Outcomes[model.ClientRefused]
	delta.Outcomes[model.ClientRefused] = 0

	port := p.account(netip.AddrPortFrom(netip.Addr{}, e.Addr.Port()))
	port.totals = port.totals.Add(refused)
	if refused.Outcomes[model.ClientRefused] > 0 {
		port.refused = at
		if !e.Addr.Addr().IsUnspecified() {
			port.refusedAt = e.Addr
		}
	}
	a := port
	if met, ok := mostSpecific(e.Addr, listening); ok {
		a = p.account(met)
	} else if met, ok := mostSpecific(e.Addr, p.previous()); ok {
		a = p.account(met) // an attempt is decided after its last packet, and the listener may have closed
	}
	a.totals = a.totals.Add(delta)
	a.waits = a.waits.And(model.Waits{Shortest: e.Delays.Shortest, Longest: e.Delays.Longest})
	a.state(e)
	// What is reported is as of up to that long ago, and the client began no later.
	if began := at.Add(-e.Troubled - handshake.Lag); e.Troubled > 0 && began.After(a.troubled) {
		a.troubled = began
	}
}

// accountOf is a listener's, nil where its namespace is not tapped.
func accountOf(namespaces map[uint64]*namespace, id model.ListenerID) *account {
	p := namespaces[id.NetNS]
	if p == nil || p.tap == nil {
		return nil
	}
	return p.accounts[id.Address]
}

// sharesAddress reports whether a listener differs from another by its device only:
// which of them a client met does not show.
func sharesAddress(s *model.Snapshot, l *model.Listener) bool {
	if !l.Listening() {
		return false
	}
	return slices.ContainsFunc(s.Listeners, func(other model.Listener) bool {
		return other.Listening() && other.ID.NetNS == l.ID.NetNS && other.ID.Address == l.ID.Address && other.ID.Device != l.ID.Device
	})
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
	c := &a.latest
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

// marks is how many there are of an interval: totals are 280 bytes, and an agent
// may have a hundred accounts.
const marks = 60

// remember notes the totals where they have changed, for as long as snapshots
// reach back.
func (a *account) remember(at time.Time, interval time.Duration, lost uint64) {
	if n := len(a.past); n == 0 || (a.past[n-1].totals != a.totals || a.past[n-1].lost != lost) && at.Sub(a.past[n-1].at) >= interval/marks {
		a.past = append(a.past, mark{at, a.totals, lost, a.waits})
		a.waits = model.Waits{}
	}
	from := 0
	for from+1 < len(a.past) && !a.past[from+1].at.After(at.Add(-interval)) {
		from++
	}
	a.past = slices.Delete(a.past, 0, from)
}

// clients of an interval that ends now.
func (a *account) clients(p *namespace, now time.Time, interval time.Duration) *model.Clients {
	out := a.latest
	out.ClientTotals, out.Waits, out.PacketsLost = a.totals, a.waits, p.lost
	past := a.past
	for len(past) > 1 && !past[1].at.After(now.Add(-interval)) {
		past = past[1:]
	}
	if len(past) > 0 && interval > 0 && !past[0].at.After(now.Add(-interval)) {
		out.ClientTotals = a.totals.Sub(past[0].totals)
		out.PacketsLost -= past[0].lost
		past = past[1:]
	}
	for _, m := range past {
		out.Waits = out.Waits.And(m.waits)
	}
	out.Arrivals = a.arrivals(now)
	out.Estimated = p.conservation.estimated(now, interval)
	out.Observed = max(0, min(interval, now.Sub(p.opened)-handshake.Lag))
	return &out
}

func totals(e *outcome.Endpoint) model.ClientTotals {
	t := model.ClientTotals{Outcomes: e.Clients, Untracked: e.Untracked} // the outcomes are the same, in the same order
	t.LetIn, t.LetInLate, t.GaveUpUnreached, t.ResetInAnswer = e.LetIn, e.LetInLate, e.GaveUpUnreached, e.ResetInAnswer
	t.Unheard, t.Alerted = e.Unheard, e.Alerted
	t.Begun = uint64(e.Open())
	for _, n := range e.Clients {
		t.Begun += n
	}
	t.Answers = model.ClientAnswers{Answered: e.Answers.Answered, Unanswered: e.Answers.Unanswered, Closed: e.Answers.Closed, Checks: e.Answers.Checks, Unclear: e.Answers.Unknown}
	t.Delays = model.ConnectDelays{
		Count: e.Delays.Count, Sum: e.Delays.Sum, Bounds: outcome.DelayBounds(), Buckets: e.Delays.Buckets(),
	}
	t.Responses = model.FirstResponses{
		Count: e.Responses.Count, Sum: e.Responses.Sum, Bounds: outcome.ResponseBounds(), Buckets: e.Responses.Buckets(),
	}
	return t
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
