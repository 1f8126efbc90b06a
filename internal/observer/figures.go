package observer

import (
	"maps"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// sameMoment is how far a walk and Actuator's answer may lie apart to be of the same
// moment. Actuator is asked every 5 s, and a burst fills a server in less.
const sameMoment = 1500 * time.Millisecond

// figures say of which listeners Actuator's number of busy threads was less than the
// connections of the same moment show.
type figures struct {
	mu   sync.Mutex
	less map[model.ListenerID]bool
}

// current is an entry's connector as of a walk: Actuator's number of busy threads counts
// unless it is of an earlier moment, and the connections show more by now. Where they
// showed more at the same moment as well (asynchronous handlers are in service and
// have no thread), Actuator is believed.
func (fs *figures) current(e *entry, f *connections.Found, at time.Time) *model.Connector {
	c := e.connector
	if c == nil || c.BusyThreads == nil || c.BusyAt.IsZero() {
		return c
	}
	seen := *c
	seen.BusyThreads = nil
	n, known := (&model.Listener{Connector: &seen, Connections: f.Behind(c)}).BusyThreads()
	more := known != model.BusyIsKnown || n > *c.BusyThreads
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if at.Sub(c.BusyAt).Abs() < sameMoment {
		if fs.less == nil {
			fs.less = make(map[model.ListenerID]bool)
		}
		fs.less[e.ID] = more
		return c
	}
	if more && known == model.BusyIsKnown && !fs.less[e.ID] {
		return &seen
	}
	return c
}

// keep forgets what is not live.
func (fs *figures) keep(live map[model.ListenerID]bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	maps.DeleteFunc(fs.less, func(id model.ListenerID, _ bool) bool { return !live[id] })
}
