// Package namespace follows the listeners of one network namespace: the samples
// of their accept queues, the dump of all of them, the counters of the namespace.
// It maps the kernel's values to the domain's; this is the only place where
// Recv-Q becomes "accept queue". What it asks stands behind one interface.
package namespace

import (
	"errors"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Namespace is one network namespace: its counters, and the listeners watched in
// it. Sample, List and Watch may be called by different goroutines; Walk and the
// reading of sysctls and sockstat by one.
type Namespace struct {
	ID  uint64
	Net uint64 // as hostproc.FS.NetID returns it; 0 for the agent's own

	// OfAgent: it is the agent's own.
	OfAgent bool
	PID     int // of the process by which it was opened, 0 for none
	// General: selectors without a process find their listeners here.
	General bool
	// Discovered: it came with its processes and goes with them.
	Discovered bool
	// Owner is the pod, the container or else the user of that process, where it was discovered.
	Owner string
	// Served are expected ports that have had a listener, for as long as it lives.
	Served map[uint16]bool
	// Seen are ports that nobody asked for, and the server that was last watched there.
	Seen map[uint16]Seen

	shared  *Shared
	walking sync.Mutex // held while the connections are walked, and when it is closed
	closed  bool       // written with the turn and sampler.mu, read with either
	*sampler
}

// Seen is a server on a port: when it was last watched, and the user who made its socket.
type Seen struct {
	At   time.Time
	User uint32
}

// New follows a namespace. window is what losses and peaks span.
func New(id, net uint64, kernel Kernel, shared *Shared, window time.Duration) *Namespace {
	return &Namespace{
		ID: id, Net: net, Served: make(map[uint16]bool), Seen: make(map[uint16]Seen),
		shared: shared, sampler: newSampler(id, kernel, &shared.crowds, window),
	}
}

// calmAfter is how long all accept queues of a namespace must have been empty, with
// nothing dropped, for it to be calm.
const calmAfter = 10 * time.Second

// Expect says which addresses are sure to be watched once somebody listens there.
func (n *Namespace) Expect(expects func(model.ListenerID) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.expects = expects
}

// Books runs fn with what is counted, while nothing else is.
func (n *Namespace) Books(fn func(*losses.Books)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fn(n.books)
}

// Open reports whether the namespace's counters are followed.
func (n *Namespace) Open() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.closed && n.books.Open()
}

// idle reports whether a discovered namespace has nothing that is watched,
// remembered or expected: a list of its listeners is then all that it costs.
func (n *Namespace) idle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.Discovered && len(n.watches.list) == 0 && len(n.books.Accounts()) == 0 && len(n.Served) == 0
}

// ErrClosed says that the namespace is no longer followed.
var ErrClosed = errors.New("network namespace is no longer followed")

// Prepare opens what following the counters takes, and proves that they can be
// read.
func (n *Namespace) Prepare() error {
	n.shared.turn.Lock()
	defer n.shared.turn.Unlock()
	var c netstat.ListenCounters
	return n.kernel.ListenCounters(&c)
}

// End notes that all watched listeners have closed, as with their namespace.
func (n *Namespace) End(now time.Time) {
	n.shared.turn.Lock()
	defer n.shared.turn.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.watches.list {
		n.watches.list[i].close(now)
	}
}

// Leave closes the namespace and returns its accounts, with what their listeners
// have lost to the last: our own files keep it alive.
func (n *Namespace) Leave(now time.Time) []*losses.Account {
	n.shared.turn.Lock()
	if n.Open() {
		_ = n.splitDrops(now) // what cannot be read any more was read before
	}
	n.mu.Lock()
	var out []*losses.Account
	for _, a := range n.books.Accounts() {
		if a.LastSeen.IsZero() {
			a.LastSeen = now
		}
		out = append(out, a)
	}
	n.closed = true
	n.mu.Unlock()
	n.crowds.note(n.id, 0)
	n.takesDumps(false)
	n.shared.turn.Unlock()
	_ = n.Close() // nothing can be done about it
	return out
}

// Close lets the namespace go.
func (n *Namespace) Close() error {
	n.walking.Lock()
	defer n.walking.Unlock()
	n.shared.turn.Lock()
	defer n.shared.turn.Unlock()
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.crowds.note(n.id, 0)
	n.takesDumps(false)
	return n.kernel.Close()
}
