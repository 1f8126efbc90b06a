package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
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
	cost, err = cputime.Of(func() (err error) {
		found, err = t.walk(start, r, n, kept, out)
		return err
	})
	t.abandoned(n, kept, found, before)
	cost += ts.settleOutgoing(r, n, out, cost, ps)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.spent.Observe(ts.now().Sub(start))
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
