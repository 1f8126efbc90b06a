package connscan

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Read reads the connections of a namespace's watched listeners, and the outgoing
// ones if it is time, and returns the CPU time it took. After the last reading nothing
// has to be remembered.
func (s *Scanner) Read(r *facts.Watchlist, n *namespace.Namespace, last bool) (cost time.Duration, err error) {
	watched := r.In(n.ID)
	if len(watched) == 0 {
		return 0, nil
	}
	start, t := s.now(), s.memory(n.ID)
	out := s.searchPorts(r, n)
	before := namespace.TurnoverOf(n)
	var scan *downstream.Scan
	if s.needsOutgoing(watched, n.ID, start) {
		scan = &s.peers.scan
	}
	w := s.peers.reading(start, r, n, watched, out, scan, last)
	t.known.setListeners(w.ids)
	w.strange = t.strange.of
	w.readOwned = func() *ownedSockets { return s.holding(r, n.ID, start) }
	w.calm = !last && !n.Troubled(t.known.counted) && allUneventful(s, watched)
	cost, err = cputime.Of(func() (err error) {
		if err = t.read(w, n, before); err == nil && !w.subset && t.strange.settle(s, r, n.ID, w) {
			t.known.forget()
			w.restart()
			err = t.read(w, n, before)
		}
		if err == nil && w.scan != nil {
			s.sortOutgoing(r, n.ID, start, w.found)
		}
		return err
	})
	cost += w.ownedCost
	if err == nil && w.scan != nil {
		s.peers.last[n.ID] = lastScan{start, cost}
	}
	if !w.subset {
		t.abandoned(n, watched, w.found, before.Resets)
	}
	cost += s.settlePorts(r, n, out, cost)
	for _, e := range watched {
		if f := w.found[e.ID]; f != nil {
			s.figures.Current(e.ID, e.Connector, f, start)
		}
	}
	s.store.PutConnections(n.ID, start, w.found, err)
	return cost, err
}

// read asks for a random part of the known connections where they are many and calm,
// for all of them where no other one has come since they were found, and else goes once
// through the table, for the watched ports of both families and the outgoing ones.
// The counts of a walk that was cut short each time it was tried are partial.
func (t *memory) read(w *reading, n *namespace.Namespace, before namespace.Turnover) error {
	if w.calm && !w.outgoing.due && t.readSubset(w, n, before) {
		return nil
	}
	all, known := n.Sockstat()["tw"]
	settled := known && all == 0
	if !w.outgoing.due && (!w.last || !w.tried) && t.known.serves(w.at, before, w.scan != nil, settled) {
		if t.known.ask(n, w.scan != nil, w.take) == nil {
			if !settled {
				t.timeWait.Recall(w.found)
			}
			t.known.counted = w.at
			w.finish(false)
			return nil
		}
		w.restart()
	}
	cost, err := cputime.Of(func() error { return t.walk(w, n, all) })
	w.outgoing.whole = err == nil
	if err == nil && !w.last {
		t.known.walked(w.at, before, cost, w.scan != nil && w.owned.fresh)
	} else {
		t.known.forget()
	}
	w.finish(err != nil)
	if errors.Is(err, sockdiag.ErrInterrupted) {
		return nil
	}
	return err
}

// walk goes through the table. all is how many sockets of the namespace are in TIME_WAIT.
func (t *memory) walk(w *reading, n *namespace.Namespace, all int) error {
	end := w.beginHolding()
	timeWait := t.timeWait.Due(w.at, all, w.ids) || w.outgoing.due && !w.outgoing.apart // which keep their ports
	t.known.begin()
	restart := func() {
		t.known.begin()
		w.restart()
	}
	err := n.Walk(w.whole(timeWait), restart, func(s *sockdiag.Socket) error {
		if watched := w.watched.Has(s.Local.Port()); !w.last && (watched || w.owns(s)) {
			t.known.add(s, watched)
		}
		w.take(s)
		return nil
	})
	end()
	if err == nil && w.outgoing.apart {
		err = t.walkOutgoing(w, n)
	}
	switch {
	case !timeWait:
		t.timeWait.Recall(w.found)
	case err == nil:
		t.timeWait.Counted(w.at, all, w.found)
	}
	return err
}

// walkOutgoing goes through the outgoing connections without their tcp_info, unless the
// watched processes' own are known, and asks for that of these.
func (t *memory) walkOutgoing(w *reading, n *namespace.Namespace) error {
	var others []uint32
	if w.owned != nil {
		slices.Sort(w.accepted)
		others = w.owned.without(w.accepted, w.listening)
	}
	switch {
	case w.owned != nil && w.owned.complete() && len(others) == 0 && !w.outgoing.left:
		t.outgoing.learn(w.at, 0, nil, w.owned, nil) // there is none, and no port is taken by one
	case w.outgoing.due || !t.outgoing.serves(w.at, w.owned, others):
		if err := t.findOutgoing(w, n, others); err != nil {
			return err
		}
	}
	if w.scan == nil || len(t.outgoing.connections) == 0 {
		return nil
	}
	return n.Connections(t.outgoing.connections, func(_ int, s *sockdiag.Socket, err error) {
		if err == nil {
			t.known.add(s, false)
			w.scan.Add(s)
		}
	})
}

func (t *memory) findOutgoing(w *reading, n *namespace.Namespace, others []uint32) error {
	var found []sockdiag.ConnectionID
	restart := func() {
		w.restartOutgoing()
		found = found[:0]
	}
	cost, err := cputime.Of(func() error {
		return n.Walk(w.outgoingOnly(), restart, func(s *sockdiag.Socket) error {
			if w.outgoing.due {
				w.outgoing.peers.Add(s, w.outgoing.reuse)
			}
			if w.owns(s) {
				found = append(found, s.ID())
			}
			return nil
		})
	})
	switch {
	case err != nil:
		t.outgoing = knownOutgoing{}
	case w.scan != nil:
		t.outgoing.learn(w.at, cost, found, w.owned, others)
	}
	return err
}

// leftBehind are the connections that clients had closed at the latest walk, and the checkpoint
// of the listener's account before it.
type leftBehind struct {
	connections.ClosedByClient
	checkpoint int
}

// abandoned books the requests whose clients did not wait for the answer. No
// reset counts for two. before is EstabResets before the walk.
func (t *memory) abandoned(n *namespace.Namespace, watched []*facts.Watched, found map[model.ListenerID]*connections.Found, before uint64) {
	closed := make([]uint64, len(watched))
	for i, e := range watched {
		f := found[e.ID]
		if f == nil || f.Counts.Partial { // what the walk did not reach has not disappeared
			continue
		}
		if t.closed[e.ID] == nil {
			t.closed[e.ID] = &leftBehind{}
		}
		closed[i] = t.closed[e.ID].Next(f.Unanswered(e.Connector))
	}
	after := namespace.TurnoverOf(n).Resets
	n.Books(func(b *losses.Books) {
		most := t.resets.Next(before, after, b.QueueResets())
		var used uint64
		for i, count := range losses.Allot(most, closed, cmp.Compare) {
			used += count
			if f := found[watched[i].ID]; f != nil && !f.Counts.Partial {
				a, left := b.Account(watched[i].ID), t.closed[watched[i].ID]
				a.Abandon(count, left.checkpoint)
				left.checkpoint = a.Checkpoint()
			}
		}
		t.resets.Use(most, used)
	})
}
