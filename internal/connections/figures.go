package connections

import (
	"maps"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// sameMoment is how long before the first walk Actuator may have answered to be compared
// with it.
const sameMoment = 1500 * time.Millisecond

// Figures hold Actuator's number of busy threads against the connections in service. It
// is asked every 5 s, and a burst fills a server in less.
type Figures struct {
	walks map[model.ListenerID]figure
}

// figure is what is remembered of one listener.
type figure struct {
	at      time.Time // of the latest walk
	serving int       // in service then
	// less: Actuator had fewer threads busy than requests were in service both before and
	// after it answered: asynchronous ones, which have no thread.
	less bool
}

// Current is a listener's connector as of a walk. Actuator's number counts, but where the
// connections show more by now and have not before: it is of the time before then.
func (fs *Figures) Current(id model.ListenerID, c *model.Connector, f *Found, at time.Time) *model.Connector {
	if c == nil || c.BusyThreads == nil || c.BusyAt.IsZero() || !f.Counts.Exact() {
		return c
	}
	seen := *c
	seen.BusyThreads = nil
	n, known := (&model.Listener{Connector: &seen, Connections: f.Behind(c)}).BusyThreads()
	if known != model.BusyIsKnown {
		return c
	}
	if fs.less(id, n, at, c) || n <= *c.BusyThreads {
		return c
	}
	return &seen
}

// less takes a walk, and reports whether Actuator has less than the connections show.
func (fs *Figures) less(id model.ListenerID, n int, at time.Time, c *model.Connector) bool {
	before, known := fs.walks[id]
	now := figure{at: at, serving: n}
	switch {
	case !known:
		now.less = n > *c.BusyThreads && at.Sub(c.BusyAt) < sameMoment
	case !at.After(before.at):
		return before.less
	case !c.BusyAt.Before(before.at) && c.BusyAt.Before(at): // it answered between the two
		now.less = min(n, before.serving) > *c.BusyThreads
	default:
		now.less = before.less
	}
	if fs.walks == nil {
		fs.walks = make(map[model.ListenerID]figure)
	}
	fs.walks[id] = now
	return now.less
}

// Retain forgets what is not live.
func (fs *Figures) Retain(live map[model.ListenerID]bool) {
	maps.DeleteFunc(fs.walks, func(id model.ListenerID, _ figure) bool { return !live[id] })
}

// Clone is a copy that remembers the same.
func (fs *Figures) Clone() Figures { return Figures{walks: maps.Clone(fs.walks)} }
