package connscan

import (
	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// roomy is the part of a limit above which each connection is counted: a verdict may
// depend on it.
const roomy = 0.5

// readSubset asks for a random part of the known connections, and reports whether that is
// enough: it shows nothing that would have to be counted. The listeners of ports that have
// too few known ones for it keep their latest reading.
func (t *memory) readSubset(w *reading, n *namespace.Namespace, before namespace.Turnover) bool {
	ids, of := t.known.subset(w.at, before)
	if len(ids) == 0 {
		return false
	}
	scan := w.scan
	if !t.known.whole || !t.known.still(before) { // the outgoing ones wait for a walk
		w.scan = nil
	}
	if t.known.askOf(n, ids, w.scan != nil, w.take) != nil || !w.estimate(of) {
		w.scan = scan
		w.restart()
		return false
	}
	w.subset = true
	t.timeWait.Recall(w.found)
	w.finish(false)
	return true
}

// estimate has what was found stand for all, and reports whether it may.
func (w *reading) estimate(of map[uint16]connections.Subset) bool {
	for _, e := range w.listeners {
		if s, ok := of[e.Port()]; ok {
			f := w.found[e.ID]
			if f.Estimate(s); !uneventful(f, e.Connector) {
				return false
			}
		}
	}
	for _, e := range w.listeners {
		if _, ok := of[e.Port()]; !ok {
			delete(w.found, e.ID)
		}
	}
	return true
}

// allUneventful reports whether the latest readings of all listeners were.
func allUneventful(s *Scanner, watched []*facts.Watched) bool {
	for _, e := range watched {
		list := s.store.Connections(e.ID)
		if last, ok := list.Last(); ok && !uneventful(last.Value, e.Connector) {
			return false
		}
	}
	return true
}

// uneventful reports whether nothing waits, no client has gone before its answer, and the
// server is far from its limits.
func uneventful(f *connections.Found, k *model.Connector) bool {
	c := f.Behind(k)
	if c.Partial || f.Queued > 0 || len(f.Closed) > 0 || c.Phases[model.Waiting] > 0 {
		return false
	}
	if k == nil {
		return true
	}
	served := c.Phases[model.InService] + c.Phases[model.Sending] + c.Phases[model.ClientClosed]
	return below(k.MaxConnections, c.Accepted+c.Error) && below(k.MaxThreads, served+c.Error)
}

func below(limit *model.Setting[int], n int) bool {
	return limit == nil || limit.Value < 0 || float64(n) < roomy*float64(limit.Value)
}
