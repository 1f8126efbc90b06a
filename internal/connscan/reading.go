package connscan

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// reading is one reading of a namespace's connections: each socket goes to its
// listener, or to the outgoing ones.
type reading struct {
	at        time.Time
	listeners []*facts.Watched
	ids       []model.ListenerID
	found     map[model.ListenerID]*connections.Found
	watched   *sockdiag.Ports
	wanted    *sockdiag.Ports // those and the outgoing connections', or the latter alone
	matcher   *connections.Matcher
	outgoing  *portSearch
	scan      *downstream.Scan // nil: it is not time
	last      bool             // no other reading follows
	tried     bool             // clients of the namespace itself that have no answer are looked for
	calm      bool             // a part of the connections may stand for all
	subset    bool             // and did
	readOwned func() *ownedSockets
	owned     *ownedSockets // of the walk under way, nil where all that is asked for is theirs
	accepted  []uint32      // inodes of the connections of the watched ports, ascending at the end
	listening []uint32      // inodes of all listening sockets, ascending, where the outgoing ones are walked apart

	strange map[uint32]holder // connections that other processes hold
	others  map[model.ListenerID]map[int]*model.OtherProcess

	ownedCost time.Duration // CPU time of reading them beside the walk
}

// reading begins one.
func (o *outgoingMemory) reading(at time.Time, r *facts.Watchlist, n *namespace.Namespace, watched []*facts.Watched, out *portSearch, scan *downstream.Scan, last bool) *reading {
	w := &reading{
		last: last, tried: scan != nil || last && !out.apart,
		at: at, listeners: watched, ids: make([]model.ListenerID, len(watched)), found: make(map[model.ListenerID]*connections.Found, len(watched)),
		others:  make(map[model.ListenerID]map[int]*model.OtherProcess),
		watched: &o.watched, wanted: &o.wanted, outgoing: out, scan: scan,
	}
	*w.watched, *w.wanted = sockdiag.Ports{}, sockdiag.Ports{}
	if scan != nil {
		scan.Reset()
	}
	searched := scan != nil || out.due
	out.apart = out.apart && searched
	if searched || w.tried {
		sysctl, _ := n.Sysctl()
		connections.AddOutgoing(w.wanted, sysctl, servedPorts(r, n.ID))
	}
	for i, e := range watched {
		w.ids[i], w.found[e.ID] = e.ID, &connections.Found{}
		w.watched.Add(e.Port())
		if !out.apart { // the ports that are served are not among the outgoing ones
			w.wanted.Add(e.Port())
		}
	}
	if out.apart {
		w.listening = listeningInodes(r, n.ID)
	}
	w.matcher = matcherOf(r, n.ID, w.watched, w.found)
	return w
}

// listeningInodes are those of a namespace's listening sockets, ascending.
func listeningInodes(r *facts.Watchlist, netns uint64) (out []uint32) {
	for _, c := range r.All {
		if c.ID.NetNS == netns {
			out = append(out, c.Inodes()...)
		}
	}
	slices.Sort(out)
	return out
}

// matcherOf: a listener on a watched port that is not watched has connections of
// its own.
func matcherOf(r *facts.Watchlist, netns uint64, watched *sockdiag.Ports, out map[model.ListenerID]*connections.Found) *connections.Matcher {
	m := &connections.Matcher{Listeners: make(map[connections.Bound]*connections.Found, len(out))}
	for _, c := range r.All {
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

// beginHolding reads held, beside the walk where that does not need it yet (19,000
// descriptors take as long as the walk that finds their connections). wait returns
// when it is there.
func (w *reading) beginHolding() (wait func()) {
	switch {
	case w.scan == nil:
		return func() {}
	case !w.outgoing.apart:
		w.owned = w.readOwned()
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ownedCost, _ = cputime.Of(func() error {
			w.owned = w.readOwned()
			return nil
		})
	}()
	return func() { <-done }
}

// whole is what the walk looks for: the outgoing connections, too, unless they are
// walked apart.
func (w *reading) whole(timeWait bool) sockdiag.Wanted {
	out := sockdiag.Wanted{Ports: w.watched, States: connections.States(timeWait), Info: true}
	if w.outgoing.apart {
		return out
	}
	out.Ports = w.wanted
	if w.tried {
		out.States = out.States.With(sockdiag.SynSent)
	}
	return out
}

// outgoingOnly is what a walk for them alone looks for.
func (w *reading) outgoingOnly() sockdiag.Wanted {
	states := sockdiag.States(0).With(sockdiag.Established)
	if w.outgoing.due { // each of them keeps its port
		states = connections.States(true)
	}
	return sockdiag.Wanted{Ports: w.wanted, States: states.With(sockdiag.SynSent)}
}

// restart forgets what was taken.
func (w *reading) restart() {
	for _, f := range w.matcher.Listeners {
		*f = connections.Found{}
	}
	w.accepted = w.accepted[:0]
	clear(w.others)
	w.restartOutgoing()
}

func (w *reading) restartOutgoing() {
	clear(w.outgoing.peers)
	if w.scan != nil {
		w.scan.Reset()
	}
}

// owns reports whether an outgoing connection is one of a watched process.
func (w *reading) owns(s *sockdiag.Socket) bool {
	return w.scan != nil && downstream.Carries(s) && w.owned.has(s)
}

func (w *reading) take(s *sockdiag.Socket) {
	if w.watched.Has(s.Local.Port()) {
		if (w.outgoing.apart || w.scan != nil) && s.Inode != 0 {
			w.accepted = append(w.accepted, s.Inode)
		}
		if f := w.matcher.Find(s); f != nil && !w.strangers(s, f) {
			f.Add(s)
		}
		return
	}
	if f := w.matcher.Tried(s); f != nil {
		f.Try(s)
	}
	if w.outgoing.due {
		w.outgoing.peers.Add(s, w.outgoing.reuse)
	}
	if w.owns(s) {
		w.scan.Add(s)
	}
}

// strangers counts a connection that another process holds.
func (w *reading) strangers(s *sockdiag.Socket, f *connections.Found) bool {
	h, ok := w.strange[s.Inode]
	if !ok || s.Inode == 0 {
		return false
	}
	for id, of := range w.found {
		if of != f {
			continue
		}
		if w.others[id] == nil {
			w.others[id] = make(map[int]*model.OtherProcess)
		}
		if w.others[id][h.pid] == nil {
			w.others[id][h.pid] = &model.OtherProcess{PID: h.pid, Comm: model.Escape(h.comm)}
		}
		w.others[id][h.pid].Connections++
	}
	return true
}

// finish ends it.
func (w *reading) finish(partial bool) {
	took := time.Since(w.at)
	for id, f := range w.found {
		f.Counts.Other = largest(w.others[id])
		f.Finish(w.at, took, partial)
	}
}
