package assemble

import (
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// expected is a port that was asked for.
type expected struct {
	netns uint64
	port  uint16
}

// down adds the expected ports on which nothing listens, and those that may be missed, each with what its
// last listener's clients lost, and who that was.
func (d *draft) down() {
	d.remember()
	for _, t := range d.Targets {
		if t.Up {
			continue
		}
		l := model.Listener{ID: model.ListenerID{NetNS: t.NetNS}, Port: t.Port, Expected: !t.Unasked, Elsewhere: t.Elsewhere}
		if n := d.f.Namespace(t.NetNS); n != nil && n.Down[t.Port] != nil {
			lost := *n.Down[t.Port]
			lost.WorstCase = append(diagnosis.WorstCase(&lost, nil, n.Sysctl), diagnosis.SeenRefused)
			l.Losses = &lost
		}
		if last, ok := d.next.last[expected{t.NetNS, t.Port}]; ok {
			last.Ago = max(0, d.Time.Sub(last.Seen))
			l.Last = &last
		}
		if o := t.Draining; o != nil && (l.Last == nil || l.Last.PID == 0 || l.Last.PID == o.PID) { // else it is not who listened
			l.Draining = o
		}
		d.Listeners = append(d.Listeners, l)
	}
}

// callers are the clients that come to a port on which nothing listens any more, without a pause of askedWithin.
type callers struct {
	before uint64    // of the port's refused: those of earlier
	total  uint64    // and all
	at     time.Time // when the latest was refused; zero for never
}

const (
	// askedLeast is how many of them miss a server: one is as likely a stranger, who looks for open ports.
	askedLeast = 3
	// askedWithin is how often at least clients ask that miss it, a balancer's checks among them.
	askedWithin = time.Minute
)

// missed leaves out the ports that nobody expects where nothing listens any more, but for those at
// which clients are refused, and not a stranger alone: a server may be gone for good.
func (d *draft) missed() {
	next := make(map[expected]callers)
	d.Listeners = slices.DeleteFunc(d.Listeners, func(l model.Listener) bool {
		if l.Listening() || l.Expected {
			return false
		}
		lately := uint64(0)
		if l.Losses != nil && l.Losses.Clients != nil {
			lately = l.Losses.Clients.Outcomes[model.ClientRefused]
		}
		key := expected{l.ID.NetNS, l.Port}
		a := d.refused(key, lately)
		next[key] = a
		return lately == 0 || max(lately, a.total-a.before) < askedLeast
	})
	d.next.callers = next
}

// refused are those who ask for the port by now, of which some were refused lately.
func (d *draft) refused(key expected, lately uint64) callers {
	a, known := d.next.callers[key]
	total := a.total
	for i := range d.Targets {
		if t := &d.Targets[i]; t.NetNS == key.netns && t.Port == key.port && t.Refused != nil {
			total = *t.Refused
		}
	}
	switch {
	case !known:
		a.before = total - min(total, lately)
	case total < a.total: // its count began again
		a.before = 0
	case total > a.total && d.Time.Sub(a.at) > askedWithin:
		a.before = a.total
	}
	if total > a.total {
		a.at = d.Time
	}
	a.total = total
	return a
}

// remember notes who listens on each expected port, and forgets the ports that are no
// longer expected: a namespace that was closed, a file that was reloaded.
func (d *draft) remember() {
	asked := make(map[expected]bool, len(d.Targets))
	for _, t := range d.Targets {
		asked[expected{t.NetNS, t.Port}] = true
	}
	maps.DeleteFunc(d.next.last, func(e expected, _ model.LastListener) bool { return !asked[e] })
	for i := range d.Listeners {
		l := &d.Listeners[i]
		key := expected{l.ID.NetNS, l.Port}
		if !asked[key] {
			continue
		}
		was := d.next.last[key]
		last := model.LastListener{Address: l.ID.String(), Pod: l.Pod, Seen: d.Time}
		if last.Pod == nil && was.Address == last.Address && (l.Process == nil || l.Process.PID == was.PID) {
			last.Pod = was.Pod
		}
		if l.Process != nil {
			last.Comm, last.PID = l.Process.Comm, l.Process.PID
		} else if was.Address == last.Address {
			last.Comm, last.PID = was.Comm, was.PID
		}
		d.next.last[key] = last
	}
}
