package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// sweep is one reading of a namespace's connections: each socket goes to its
// listener, or to the outgoing ones.
type sweep struct {
	at       time.Time
	ids      []model.ListenerID
	found    map[model.ListenerID]*connections.Found
	watched  *sockdiag.Ports
	wanted   *sockdiag.Ports // those and the outgoing connections'
	matcher  *connections.Matcher
	outgoing *outgoing
	scan     *downstream.Scan // nil: it is not time
}

// sweep begins one.
func (o *outgoings) sweep(at time.Time, r *roster, n *namespace.Namespace, kept []*entry, out *outgoing, scan *downstream.Scan) *sweep {
	w := &sweep{
		at: at, ids: make([]model.ListenerID, len(kept)), found: make(map[model.ListenerID]*connections.Found, len(kept)),
		watched: &o.watched, wanted: &o.wanted, outgoing: out, scan: scan,
	}
	*w.watched, *w.wanted = sockdiag.Ports{}, sockdiag.Ports{}
	if scan != nil {
		scan.Reset()
	}
	if scan != nil || out.due {
		sysctl, _ := n.Sysctl()
		connections.AddOutgoing(w.wanted, sysctl, servedPorts(r, n.ID))
	}
	for i, e := range kept {
		w.ids[i], w.found[e.ID] = e.ID, &connections.Found{}
		w.watched.Add(e.Port())
		w.wanted.Add(e.Port())
	}
	w.matcher = matcherOf(r, n.ID, w.watched, w.found)
	return w
}

// matcherOf: a listener on a watched port that is not watched has connections of
// its own.
func matcherOf(r *roster, netns uint64, watched *sockdiag.Ports, out map[model.ListenerID]*connections.Found) *connections.Matcher {
	m := &connections.Matcher{Listeners: make(map[connections.Bound]*connections.Found, len(out))}
	for _, c := range r.all {
		if c.ID.NetNS != netns || !watched.Has(c.Port()) {
			continue
		}
		f := out[c.ID]
		if f == nil {
			f = &connections.Found{}
		}
		m.Listeners[connections.Bound{Local: c.ID.Address, Device: c.Members[0].Interface}] = f
	}
	return m
}

// states are those of a walk.
func (w *sweep) states(timeWait bool) sockdiag.States {
	states := connections.States(timeWait)
	if w.scan != nil {
		states = states.With(sockdiag.SynSent)
	}
	return states
}

// restart forgets what was taken.
func (w *sweep) restart() {
	clear(w.outgoing.peers)
	for _, f := range w.matcher.Listeners {
		*f = connections.Found{}
	}
	if w.scan != nil {
		w.scan.Reset()
	}
}

func (w *sweep) take(s *sockdiag.Socket) {
	if w.watched.Has(s.Local.Port()) {
		if f := w.matcher.Find(s); f != nil {
			f.Add(s)
		}
		return
	}
	if w.outgoing.due {
		w.outgoing.peers.Add(s, w.outgoing.reuse)
	}
	if w.scan != nil {
		w.scan.Add(s)
	}
}

// finish ends it.
func (w *sweep) finish(partial bool) {
	for _, f := range w.found {
		f.Finish(w.at, partial)
	}
}
