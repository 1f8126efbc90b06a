package observer

import (
	"maps"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// sameMoment is how long before the first walk Actuator may have answered to be compared
// with it.
const sameMoment = 1500 * time.Millisecond

// figures hold Actuator's number of busy threads against the connections in service. It
// is asked every 5 s, and a burst fills a server in less.
type figures struct {
	mu    sync.Mutex
	looks map[model.ListenerID]*figure
}

// figure is what is remembered of one listener.
type figure struct {
	at      time.Time // of the latest walk
	serving int       // in service then
	// less: Actuator had fewer threads busy than requests were in service both before and
	// after it answered: asynchronous ones, which have no thread.
	less bool
}

// current is an entry's connector as of a walk. Actuator's number counts, but where the
// connections show more by now and have not before: it is of the time before then.
func (fs *figures) current(e *facts.Watched, f *connections.Found, at time.Time) *model.Connector {
	c := e.Connector
	if c == nil || c.BusyThreads == nil || c.BusyAt.IsZero() || !f.Counts.Exact() {
		return c
	}
	seen := *c
	seen.BusyThreads = nil
	n, known := (&model.Listener{Connector: &seen, Connections: f.Behind(c)}).BusyThreads()
	if known != model.BusyIsKnown {
		return c
	}
	if fs.less(e.ID, n, at, c) || n <= *c.BusyThreads {
		return c
	}
	return &seen
}

// less takes a walk, and reports whether Actuator has less than the connections show.
func (fs *figures) less(id model.ListenerID, n int, at time.Time, c *model.Connector) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	before := fs.looks[id]
	now := &figure{at: at, serving: n}
	switch {
	case before == nil:
		now.less = n > *c.BusyThreads && at.Sub(c.BusyAt) < sameMoment
	case !at.After(before.at):
		return before.less
	case !c.BusyAt.Before(before.at) && c.BusyAt.Before(at): // it answered between the two
		now.less = min(n, before.serving) > *c.BusyThreads
	default:
		now.less = before.less
	}
	if fs.looks == nil {
		fs.looks = make(map[model.ListenerID]*figure)
	}
	fs.looks[id] = now
	return now.less
}

// keep forgets what is not live.
func (fs *figures) keep(live map[model.ListenerID]bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	maps.DeleteFunc(fs.looks, func(id model.ListenerID, _ *figure) bool { return !live[id] })
}
