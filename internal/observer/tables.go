package observer

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// tables are the latest readings of the connections. One goroutine walks; anybody
// may ask.
type tables struct {
	proc hostproc.FS
	now  func() time.Time
	own  map[uint64]*table // by namespace, the walker's own

	mu     sync.Mutex
	found  map[model.ListenerID]recent[*connections.Found]
	reset  map[int]resetCount // by process
	busy   map[uint64]busiest // by namespace
	failed map[uint64]error   // of the latest walk, by namespace
	spent  model.DurationHistogram
}

// table is what the walker remembers of a namespace's connections.
type table struct {
	timeWait connections.TimeWaits
	resets   connections.Resets
	closed   map[model.ListenerID]*connections.ClosedByClient
	queued   map[model.ListenerID]uint32 // the socket, if clients stood in its queue at the latest walk
}

func newTables(proc hostproc.FS, now func() time.Time) *tables {
	return &tables{
		proc: proc, now: now, own: make(map[uint64]*table),
		found:  make(map[model.ListenerID]recent[*connections.Found]),
		reset:  make(map[int]resetCount),
		busy:   make(map[uint64]busiest),
		failed: make(map[uint64]error),
	}
}

// of are the latest readings of a listener's connections.
func (ts *tables) of(id model.ListenerID) recent[*connections.Found] {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.found[id]
}

// failures are the namespaces whose latest walk failed, and why.
func (ts *tables) failures() map[uint64]error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	out := make(map[uint64]error, len(ts.failed))
	for id, err := range ts.failed {
		out[id] = err
	}
	return out
}

func (ts *tables) table(netns uint64) *table {
	t := ts.own[netns]
	if t == nil {
		t = &table{closed: make(map[model.ListenerID]*connections.ClosedByClient), queued: make(map[model.ListenerID]uint32)}
		ts.own[netns] = t
	}
	return t
}

// walk goes once through the table, for the watched ports of both families and
// the outgoing ones. The counts of a walk that was cut short each time it was
// tried are partial.
func (t *table) walk(at time.Time, r *roster, n *namespace.Namespace, kept []*entry, outgoing *outgoing) (map[model.ListenerID]*connections.Found, error) {
	out := make(map[model.ListenerID]*connections.Found, len(kept))
	ids := make([]model.ListenerID, len(kept))
	watched := new(sockdiag.Ports)
	var ports []uint16
	for i, e := range kept {
		ids[i], out[e.ID] = e.ID, &connections.Found{}
		if !watched.Has(e.Port()) {
			watched.Add(e.Port())
			ports = append(ports, e.Port())
		}
	}
	matcher := matcherOf(r, n.ID, watched, out)
	all := n.Sockstat()["tw"]
	timeWait := t.timeWait.Due(at, all, ids) || len(outgoing.ports) > 0 // which keep their ports
	restart := func() {
		clear(outgoing.peers)
		for _, f := range matcher.Listeners {
			*f = connections.Found{}
		}
	}
	err := n.Walk(append(ports, outgoing.ports...), connections.States(timeWait), restart, func(s *sockdiag.Socket) error {
		if !watched.Has(s.Local.Port()) {
			outgoing.peers.Add(s)
		} else if f := matcher.Find(s); f != nil {
			f.Add(s)
		}
		return nil
	})
	outgoing.whole = err == nil
	switch {
	case !timeWait:
		t.timeWait.Recall(out)
	case err == nil:
		t.timeWait.Counted(at, all, out)
	}
	for _, f := range out {
		f.Finish(at, err != nil)
	}
	if errors.Is(err, sockdiag.ErrInterrupted) {
		err = nil
	}
	return out, err
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

// abandoned books the requests whose clients did not wait for the answer. No
// reset counts for two. before is EstabResets before the walk.
func (t *table) abandoned(n *namespace.Namespace, kept []*entry, found map[model.ListenerID]*connections.Found, before uint64) {
	vanished := make([]uint64, len(kept))
	for i, e := range kept {
		f := found[e.ID]
		if f == nil || f.Counts.Partial { // who was not walked to has not vanished
			continue
		}
		if t.closed[e.ID] == nil {
			t.closed[e.ID] = &connections.ClosedByClient{}
		}
		vanished[i] = t.closed[e.ID].Next(f.Closed)
	}
	after := n.Resets()
	n.Books(func(b *losses.Books) {
		most := t.resets.Next(before, after, b.QueueResets())
		var used uint64
		for i, count := range losses.Allot(most, vanished, cmp.Compare) {
			b.Account(kept[i].ID).Abandon(count)
			used += count
		}
		t.resets.Use(most, used)
	})
}

// keep forgets what is not in a roster.
func (ts *tables) keep(r *roster) {
	live := make(map[model.ListenerID]bool, len(r.kept))
	for i := range r.kept {
		live[r.kept[i].ID] = true
	}
	for id, t := range ts.own {
		if r.place(id) == nil {
			delete(ts.own, id)
			continue
		}
		for listener := range t.closed {
			if !live[listener] {
				delete(t.closed, listener)
				delete(t.queued, listener)
			}
		}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for id := range ts.found {
		if !live[id] {
			delete(ts.found, id)
		}
	}
	for id := range ts.failed {
		if r.place(id) == nil {
			delete(ts.failed, id)
		}
	}
	for id := range ts.busy {
		if r.place(id) == nil {
			delete(ts.busy, id)
		}
	}
}

// unavailable names the namespaces that could not be walked.
func (ts *tables) unavailable() (out []model.Unavailable) {
	for id, err := range ts.failures() {
		out = append(out, model.Unavailable{What: fmt.Sprintf("connections in network namespace %d", id), Why: err.Error()})
	}
	return out
}
