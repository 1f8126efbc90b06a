package assemble

import (
	"maps"
	"slices"

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

// missed leaves out the ports that nobody asked for where nothing listens any more, but for those at
// which clients are refused: a server may be gone for good.
func (d *draft) missed() {
	d.Listeners = slices.DeleteFunc(d.Listeners, func(l model.Listener) bool {
		return !l.Listening() && !l.Expected && (l.Losses == nil || l.Losses.Clients == nil || l.Losses.Clients.Outcomes[model.ClientRefused] == 0)
	})
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
