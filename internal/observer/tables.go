package observer

import (
	"fmt"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// tables are the latest readings of the connections. One goroutine walks; anybody
// may ask.
type tables struct {
	proc  hostproc.FS
	now   func() time.Time
	own   map[uint64]*table // by namespace, the walker's own
	peers outgoings

	figures figures
	swept   *watchlist.List // all that is remembered is of it

	mu     sync.Mutex
	found  map[model.ListenerID]facts.Recent[*connections.Found]
	reset  map[hostproc.ProcessKey]resetCount
	busy   map[uint64]busiest // by namespace
	down   map[hostproc.ProcessKey]downstreamReading
	failed map[uint64]error // of the latest walk, by namespace
}

// table is what the walker remembers of a namespace's connections.
type table struct {
	timeWait connections.TimeWaits
	resets   connections.Resets
	closed   map[model.ListenerID]*connections.ClosedByClient
	known    known
	outgoing own
	queued   map[model.ListenerID]uint32 // the socket, if clients stood in its queue at the latest walk
}

func newTables(proc hostproc.FS, now func() time.Time) *tables {
	return &tables{
		proc: proc, now: now, own: make(map[uint64]*table), peers: newOutgoings(),
		found:  make(map[model.ListenerID]facts.Recent[*connections.Found]),
		reset:  make(map[hostproc.ProcessKey]resetCount),
		busy:   make(map[uint64]busiest),
		down:   make(map[hostproc.ProcessKey]downstreamReading),
		failed: make(map[uint64]error),
	}
}

// of are the latest readings of a listener's connections.
func (ts *tables) of(id model.ListenerID) facts.Recent[*connections.Found] {
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

// keep forgets what is not in a roster.
func (ts *tables) keep(r *watchlist.List) {
	if ts.swept == r {
		return
	}
	ts.swept = r
	live := make(map[model.ListenerID]bool, len(r.Watched))
	for i := range r.Watched {
		live[r.Watched[i].ID] = true
	}
	for id, t := range ts.own {
		if !r.Has(id) {
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
	ts.keepProcesses(r)
	ts.figures.keep(live)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for id := range ts.found {
		if !live[id] {
			delete(ts.found, id)
		}
	}
	for id := range ts.failed {
		if !r.Has(id) {
			delete(ts.failed, id)
		}
	}
	for id := range ts.busy {
		if !r.Has(id) {
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
