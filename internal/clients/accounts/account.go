// Package accounts says what the clients of each listener came to: Clients are facts, as the
// taps have counted them, and Add puts them into a snapshot that is not judged yet. It is
// pure, asks nobody and knows no clock.
package accounts

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Clients are what is known of the clients at one moment. They are not changed.
type Clients struct {
	Namespaces  map[uint64]*Namespace // whose handshakes are followed, or are to be
	Unavailable []model.Unavailable   // why they are not followed somewhere
}

// Namespace is one network namespace.
type Namespace struct {
	Followed bool          // a tap is open; else nothing else is known
	Opened   time.Time     // when that was
	Observed time.Duration // for how long its clients have been followed
	Lost     uint64        // packets that could not be read
	// Broken is when the clients that were let in were last not as many as the sockets that the kernel
	// made, zero for never.
	Broken time.Time
	// Elsewhere are the clients that were let in at ports that are not followed; nil where all are.
	Elsewhere *uint64
	Accounts  map[netip.AddrPort]*Account // of each listener; of a port without one under Port
}

// Port is the address under which a port's account is.
func Port(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.Addr{}, port) }

// followed is what is known of a namespace, nil where it is not followed.
func (c *Clients) followed(netns uint64) *Namespace {
	if n := c.Namespaces[netns]; n != nil && n.Followed {
		return n
	}
	return nil
}

// of is what is known of a listener's clients, nil where its namespace is not followed.
func (c *Clients) of(id model.ListenerID) *Account {
	if n := c.followed(id.NetNS); n != nil {
		return n.Accounts[id.Address]
	}
	return nil
}

// Account is what a listener's clients came to.
type Account struct {
	RefusedAt netip.AddrPort // where the latest of the refused asked; of a port's account
	Refused   time.Time      // when that was counted
	Since     time.Time      // when its listener was first seen; zero if it was there before
	Before    uint64         // packets of its namespace that were lost before there was this account
	Totals    model.ClientTotals
	Waits     model.Waits // since the latest of Past
	Past      []Mark      // of the interval of a snapshot: when the totals had changed
	Latest    model.Clients
	Troubled  time.Time // when the youngest of the clients began that were in trouble
}

// decidedIn is how long after its last packet a client's refusal is counted at the latest, on a busy machine, too.
const decidedIn = 2 * time.Second

// Mark is what an account had come to at a moment.
type Mark struct {
	At     time.Time
	Totals model.ClientTotals
	Lost   uint64      // packets of the namespace
	Waits  model.Waits // since the mark before
}

// marks is how many there are of an interval: totals are 280 bytes, and an agent
// may have a hundred accounts.
const marks = 60

// Remember notes the totals where they have changed, for as long as snapshots
// reach back.
func (a *Account) Remember(at time.Time, interval time.Duration, lost uint64) {
	if n := len(a.Past); n == 0 || (a.Past[n-1].Totals != a.Totals || a.Past[n-1].Lost != lost) && at.Sub(a.Past[n-1].At) >= interval/marks {
		a.Past = append(a.Past, Mark{at, a.Totals, lost, a.Waits}) // behind what others may still have
		a.Waits = model.Waits{}
	}
	from := 0
	for from+1 < len(a.Past) && !a.Past[from+1].At.After(at.Add(-interval)) {
		from++
	}
	a.Past = a.Past[from:]
}

// clients of an interval that ends now. plain: its answers are known.
func (a *Account) clients(n *Namespace, now time.Time, interval time.Duration, plain bool) *model.Clients {
	out := a.Latest
	out.ClientTotals, out.Waits, out.PacketsLost = a.Totals, a.Waits, n.Lost
	past := a.Past
	for len(past) > 1 && !past[1].At.After(now.Add(-interval)) {
		past = past[1:]
	}
	if len(past) > 0 && interval > 0 && !past[0].At.After(now.Add(-interval)) {
		out.ClientTotals = a.Totals.Sub(past[0].Totals)
		out.PacketsLost -= past[0].Lost
		past = past[1:]
	} else {
		out.PacketsLost -= a.Before
	}
	for _, m := range past {
		out.Waits = out.Waits.And(m.Waits)
	}
	out.Arrivals = a.arrivals(now, plain)
	out.Estimated = !n.Broken.IsZero() && now.Sub(n.Broken) <= interval
	out.Observed = max(0, min(interval, n.Observed))
	return &out
}

// totalsBefore are those of the latest mark before a moment.
func (a *Account) totalsBefore(t time.Time) (out model.ClientTotals) {
	for i := range a.Past {
		if a.Past[i].At.Before(t) {
			out = a.Past[i].Totals
		}
	}
	return out
}
