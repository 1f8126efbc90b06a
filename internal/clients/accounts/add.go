package accounts

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// draft is a snapshot that clients are put into.
type draft struct {
	*model.Snapshot
	clients *Clients
	next    *State // nobody else has it
}

// Add puts clients into a snapshot in the making, which nobody else has: what hangs on it may be
// others', and is not changed. state is that of the snapshot before, nil where there is none.
func Add(state *State, c *Clients, s *model.Snapshot) *State {
	if c == nil {
		return nil
	}
	d := &draft{s, c, state.copy(c)}
	for i := range d.Listeners {
		d.listener(&d.Listeners[i])
	}
	d.Retired = slices.Clone(d.Retired)
	for i := range d.Retired {
		r := &d.Retired[i]
		if a := c.of(r.ID); a != nil {
			r.Totals.Clients = new(a.Totals)
			h := d.next.history(r.ID.NetNS, r.ID.Address)
			h.unnamed = time.Time{}
			r.Totals.Clients.Answers = h.answers(a.Totals.Answers)
		}
	}
	d.Targets = slices.Clone(d.Targets)
	for i := range d.Targets {
		t := &d.Targets[i]
		if n := c.followed(t.NetNS); n != nil && n.Accounts[Port(t.Port)] != nil {
			t.Refused = new(n.Accounts[Port(t.Port)].Totals.Outcomes[model.ClientRefused])
		}
	}
	for i := range d.NetNS {
		if n := c.followed(d.NetNS[i].ID); n != nil {
			d.NetNS[i].LetInElsewhere = n.Elsewhere
		}
	}
	d.Unavailable = slices.Concat(d.Unavailable, c.Unavailable, d.unseen())
	return d.next
}

// listener puts clients into one of the listeners, where there is an account of them: what is not known is left out, never zero.
func (d *draft) listener(l *model.Listener) {
	n := d.clients.followed(l.ID.NetNS)
	if n == nil || sharesAddress(d.Snapshot, l) {
		return
	}
	addr := Port(l.Port)
	port := n.Accounts[addr]
	if l.Listening() {
		addr = l.ID.Address
	}
	a := n.Accounts[addr]
	if port == nil || a == nil {
		return
	}
	h := d.next.history(l.ID.NetNS, addr)
	if l.Listening() {
		h.beside = h.beside || besides(d.Snapshot, l)
		l.Totals.Clients = new(a.Totals)
		h.greeted(a)
		h.hears(a, l.Connections)
		h.spoken(l.Connector, d.Time)
		l.Totals.Clients.Answers = h.answers(a.Totals.Answers)
	}
	afterDrops := l.Recent == nil || a.Troubled.After(l.Recent.Ended)
	l.Recent = h.recent(a, l.Recent, d.Time, n.Opened)
	if l.Losses == nil || d.Interval <= 0 {
		return
	}
	within := func(span time.Duration) *model.Clients {
		c := a.clients(n, d.Time, span, h.answers(model.ClientAnswers{}).Known)
		c.Answers, c.AfterDrops = h.answers(c.Answers), afterDrops
		if l.Listening() && d.alone(l, port) { // it was down within the interval
			c.Outcomes[model.ClientRefused] = port.clients(n, d.Time, span, false).Outcomes[model.ClientRefused]
			if c.Outcomes[model.ClientRefused] > 0 {
				c.Losers = together(c.Losers, port.Latest.Losers)
				c.RefusedAt, c.RefusedBefore = port.RefusedAt, !a.Since.IsZero() && port.Refused.Before(a.Since.Add(decidedIn))
			}
		}
		return c
	}
	losses := *l.Losses
	losses.Clients = within(d.Interval)
	l.Losses = &losses
	if l.Lately != nil {
		lately := *l.Lately
		lately.Losses.Clients = within(lately.Span)
		l.Lately = &lately
		if h.ofBefore(a, l.Recent, l.Lately, d.Time) {
			l.Recent, l.Lately = h.withoutThose(l.Recent, l.Lately)
		}
	}
}

// mostLosers is how many addresses are named.
const mostLosers = 5

// together are the addresses of both from which most were turned away.
func together(a, b []model.ClientSource) []model.ClientSource {
	out := slices.Clone(a)
	for _, s := range b {
		if i := slices.IndexFunc(out, func(c model.ClientSource) bool { return c.Addr == s.Addr }); i >= 0 {
			out[i].Clients += s.Clients
			continue
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b model.ClientSource) int { return cmp.Compare(b.Clients, a.Clients) })
	return out[:min(len(out), mostLosers)]
}

// besides reports whether something else of its namespace listens on the port.
func besides(s *model.Snapshot, l *model.Listener) bool {
	return slices.ContainsFunc(s.Listeners, func(other model.Listener) bool {
		return other.ID != l.ID && other.Port == l.Port && other.ID.NetNS == l.ID.NetNS
	})
}

// alone reports whether who is refused at the port is the listener's: nothing else listens there, and none that did so beside it,
// and is closed for the moment, would have had them.
func (d *draft) alone(l *model.Listener, port *Account) bool {
	if besides(d.Snapshot, l) {
		return false
	}
	if !d.next.history(l.ID.NetNS, l.ID.Address).beside {
		return true
	}
	return !slices.ContainsFunc(d.Retired, func(r model.RetainedTotals) bool {
		return r.ID.NetNS == l.ID.NetNS && r.ID.Address != l.ID.Address && r.ID.Address.Port() == l.Port &&
			d.next.history(r.ID.NetNS, r.ID.Address).beside && covers(r.ID.Address.Addr(), port.RefusedAt.Addr())
	})
}

// covers reports whether a listener at an address has the clients that ask at another, which is zero where it is not known.
func covers(addr, asked netip.Addr) bool {
	return !asked.IsValid() || addr == asked || addr.IsUnspecified() && (addr.Is6() || asked.Is4())
}
