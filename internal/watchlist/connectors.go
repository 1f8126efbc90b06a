package watchlist

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// DiscoveryDeadline is how long the discovery of a process may take before
	// its limits are called unavailable. It continues; nothing waits for it.
	DiscoveryDeadline = 5 * time.Second
	// DiscoveryPatience is how long the first list waits for all of them.
	DiscoveryPatience = time.Second
)

// discoverFunc is discovery.Discoverer.Discover.
type discoverFunc func(ctx context.Context, pid int, start uint64, ports []match.Listening) (match.Connectors, []model.Unavailable)

// connectors finds out what serves the listeners of each process, in parallel to
// everything else: a process whose files do not answer delays its own limits.
type connectors struct {
	Discover discoverFunc
	now      func() time.Time
	done     func() // called when a result has come

	mu      sync.Mutex
	entries map[hostproc.ProcessKey]*discovered
}

// discovered is what is known of one process, and the discovery under way.
type discovered struct {
	connectors  match.Connectors
	unavailable []model.Unavailable
	at          time.Time // of the result; zero before the first
	begun       time.Time // of the discovery under way; zero for none
	finished    chan struct{}
	asked       time.Time
}

func newConnectors(discover discoverFunc, now func() time.Time, done func()) *connectors {
	return &connectors{Discover: discover, now: now, done: done, entries: make(map[hostproc.ProcessKey]*discovered)}
}

// of is what is known of a process's listeners; it begins another discovery when
// the result is older than rest. The results are not to be changed.
func (c *connectors) of(key hostproc.ProcessKey, ports []match.Listening, rest time.Duration) (match.Connectors, []model.Unavailable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	e := c.entries[key]
	if e == nil {
		e = &discovered{}
		c.entries[key] = e
	}
	e.asked = now
	if e.begun.IsZero() && (e.at.IsZero() || now.Sub(e.at) >= rest) {
		e.begun, e.finished = now, make(chan struct{})
		go c.run(key, e, ports)
	}
	unavailable := e.unavailable
	if !e.begun.IsZero() && now.Sub(e.begun) >= DiscoveryDeadline {
		unavailable = append([]model.Unavailable{tooSlow(key.PID)}, unavailable...)
	}
	return e.connectors, unavailable
}

func tooSlow(pid int) model.Unavailable {
	return model.Unavailable{
		What: fmt.Sprintf("limits of pid %d", pid),
		Why:  fmt.Sprintf("its configuration cannot be read within %v: a file system or its Actuator does not answer", DiscoveryDeadline),
		How:  "give the limits by hand: --max-connections, --accept-count, --max-threads",
	}
}

func (c *connectors) run(key hostproc.ProcessKey, e *discovered, ports []match.Listening) {
	ctx, cancel := context.WithTimeout(context.Background(), DiscoveryDeadline)
	defer cancel()
	found, unavailable := c.Discover(ctx, key.PID, key.StartTime, ports)
	c.mu.Lock()
	first := e.at.IsZero()
	e.connectors, e.unavailable, e.at, e.begun = found, unavailable, c.now(), time.Time{}
	close(e.finished)
	c.mu.Unlock()
	if first {
		c.done()
	}
}

// wait waits for the discoveries under way, until a deadline or the end of ctx.
func (c *connectors) wait(ctx context.Context, patience time.Duration) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for _, finished := range c.underWay() {
		select {
		case <-finished:
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *connectors) underWay() (out []chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if !e.begun.IsZero() {
			out = append(out, e.finished)
		}
	}
	return out
}

// connectorsForget is how long a process may go unasked for.
const connectorsForget = time.Minute

// forget drops processes that nobody asks for any more.
func (c *connectors) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if e.begun.IsZero() && c.now().Sub(e.asked) > connectorsForget {
			delete(c.entries, key)
		}
	}
}
