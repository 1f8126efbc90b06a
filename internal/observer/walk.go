package observer

import (
	"cmp"
	"errors"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// walk reads the connections of a namespace's watched listeners, and the outgoing
// ones if it is time, and returns the CPU time it took.
func (ts *tables) walk(r *roster, n *namespace.Namespace, ps *processes) (cost time.Duration, err error) {
	kept := r.in(n.ID)
	if len(kept) == 0 {
		return 0, nil
	}
	start, t := ts.now(), ts.table(n.ID)
	out := ts.outgoing(r, n)
	var found map[model.ListenerID]*connections.Found
	before := n.Resets()
	var scan *downstream.Scan
	if ts.wantsOutgoing(kept, n.ID, start) {
		scan = &ts.peers.scan
	}
	cost, err = cputime.Of(func() (err error) {
		if found, err = t.walk(start, r, n, kept, out, scan); err == nil && scan != nil {
			ts.sortOutgoing(r, n.ID, start, found)
		}
		return err
	})
	t.abandoned(n, kept, found, before)
	cost += ts.settleOutgoing(r, n, out, cost, ps)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for id, f := range found {
		list := ts.found[id]
		list.push(start, f)
		ts.found[id] = list
	}
	if err != nil {
		ts.failed[n.ID] = err
	} else {
		delete(ts.failed, n.ID)
	}
	return cost, err
}

// walk goes once through the table, for the watched ports of both families and
// the outgoing ones. The counts of a walk that was cut short each time it was
// tried are partial.
func (t *table) walk(at time.Time, r *roster, n *namespace.Namespace, kept []*entry, outgoing *outgoing, scan *downstream.Scan) (map[model.ListenerID]*connections.Found, error) {
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
		if scan != nil {
			scan.Reset()
		}
	}
	states, beyond := connections.States(timeWait), outgoing.ports
	if scan != nil {
		scan.Reset()
		beyond, states = outgoingPortsOf(r, n), states.With(sockdiag.SynSent)
	}
	err := n.Walk(append(ports, beyond...), states, restart, func(s *sockdiag.Socket) error {
		if !watched.Has(s.Local.Port()) {
			if len(outgoing.ports) > 0 {
				outgoing.peers.Add(s)
			}
			if scan != nil {
				scan.Add(s)
			}
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
		if f == nil || f.Counts.Partial { // what the walk did not reach has not disappeared
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
