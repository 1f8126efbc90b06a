// Package facts are what is known: of each listener, process and namespace the newest
// readings, each with its own time, and which listeners are watched. Readers put them
// here; what they mean is decided elsewhere. It asks nobody and judges nothing.
package facts

import (
	"maps"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Process is what is known of a process.
type Process struct {
	Readings    Recent[*model.Process] // nil: it has ended
	Unavailable []model.Unavailable
}

// Forgotten is the latest count of a process's sockets that the kernel has forgotten:
// what may be connections that the client reset while Tomcat still holds their slot.
type Forgotten struct {
	At          time.Time
	Rest        time.Duration // until it is counted again, at least
	Count       *int          // nil where the descriptors may not be read
	Unavailable []model.Unavailable
}

// Downstream is what was read of a process's outgoing connections, why these may not be
// its own, and why its threads were not read.
type Downstream struct {
	Value           *model.Downstream
	Err, WorkersErr error
}

// Stacks is what a JVM said of its threads when it was asked for it, or why it did not.
type Stacks struct {
	Stacks *model.Stacks
	Missed []model.Unavailable
}

// Store holds the newest readings. Its lock is held for as long as it takes to copy one.
type Store struct {
	mu          sync.Mutex
	connections map[model.ListenerID]Recent[*connections.Found]
	judgements  map[model.ListenerID]Recent[evidence.Judgement]
	processes   map[hostproc.ProcessKey]Process
	forgotten   map[hostproc.ProcessKey]Forgotten
	downstream  map[hostproc.ProcessKey]Downstream
	busiest     map[uint64]map[hostproc.ProcessKey]model.Destination // by namespace
	stacks      map[hostproc.ProcessKey]Stacks
	unread      map[uint64]error // why the connections of a namespace could not be read
	agent       model.Agent
}

// NewStore makes an empty one.
func NewStore() *Store {
	return &Store{
		connections: make(map[model.ListenerID]Recent[*connections.Found]),
		judgements:  make(map[model.ListenerID]Recent[evidence.Judgement]),
		processes:   make(map[hostproc.ProcessKey]Process),
		forgotten:   make(map[hostproc.ProcessKey]Forgotten),
		downstream:  make(map[hostproc.ProcessKey]Downstream),
		busiest:     make(map[uint64]map[hostproc.ProcessKey]model.Destination),
		stacks:      make(map[hostproc.ProcessKey]Stacks),
		unread:      make(map[uint64]error),
	}
}

// Retain forgets what is not of a list.
func (s *Store) Retain(w *Watchlist) {
	live := make(map[model.ListenerID]bool, len(w.Watched))
	for i := range w.Watched {
		live[w.Watched[i].ID] = true
	}
	owners := w.Owners()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.connections, func(id model.ListenerID, _ Recent[*connections.Found]) bool { return !live[id] })
	maps.DeleteFunc(s.judgements, func(id model.ListenerID, _ Recent[evidence.Judgement]) bool { return !live[id] })
	maps.DeleteFunc(s.processes, func(key hostproc.ProcessKey, _ Process) bool { return owners[key] == nil })
	maps.DeleteFunc(s.forgotten, func(key hostproc.ProcessKey, _ Forgotten) bool { return owners[key] == nil })
	maps.DeleteFunc(s.downstream, func(key hostproc.ProcessKey, _ Downstream) bool { return owners[key] == nil })
	maps.DeleteFunc(s.busiest, func(netns uint64, _ map[hostproc.ProcessKey]model.Destination) bool { return !w.Has(netns) })
	maps.DeleteFunc(s.unread, func(netns uint64, _ error) bool { return !w.Has(netns) })
}

// PutConnections takes what a reading of a namespace's connections has found, and why it
// could not be made.
func (s *Store) PutConnections(netns uint64, at time.Time, found map[model.ListenerID]*connections.Found, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, f := range found {
		list := s.connections[id]
		list.Push(at, f)
		s.connections[id] = list
	}
	if err != nil {
		s.unread[netns] = err
	} else {
		delete(s.unread, netns)
	}
}

// Connections are the latest readings of a listener's connections.
func (s *Store) Connections(id model.ListenerID) Recent[*connections.Found] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections[id]
}

// Unread are the namespaces whose connections could not be read the last time, and why.
func (s *Store) Unread() map[uint64]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.unread)
}

// PutJudgement takes a judgement on the evidence of a listener.
func (s *Store) PutJudgement(id model.ListenerID, at time.Time, j evidence.Judgement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.judgements[id]
	list.Push(at, j)
	s.judgements[id] = list
}

// Judgements are the latest ones on the evidence of a listener.
func (s *Store) Judgements(id model.ListenerID) Recent[evidence.Judgement] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judgements[id]
}

// DropJudgements forgets those of listeners whose latest is older than a time.
func (s *Store) DropJudgements(before time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.judgements, func(_ model.ListenerID, list Recent[evidence.Judgement]) bool {
		last, ok := list.Last()
		return !ok || !last.At.After(before)
	})
}

// PutProcess takes a reading of a process, nil where it has ended, and what could not be
// read of it.
func (s *Store) PutProcess(key hostproc.ProcessKey, at time.Time, p *model.Process, unavailable []model.Unavailable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.processes[key]
	r.Readings.Push(at, p)
	r.Unavailable = unavailable
	s.processes[key] = r
}

// Process is what is known of a process.
func (s *Store) Process(key hostproc.ProcessKey) Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[key]
}

// PutForgotten takes a count of the sockets that the kernel has forgotten.
func (s *Store) PutForgotten(key hostproc.ProcessKey, f Forgotten) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten[key] = f
}

// Forgotten is the latest count; ok is false where none was made.
func (s *Store) Forgotten(key hostproc.ProcessKey) (f Forgotten, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok = s.forgotten[key]
	return f, ok
}

// PutDownstream takes what was read of a process's outgoing connections.
func (s *Store) PutDownstream(key hostproc.ProcessKey, d Downstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downstream[key] = d
}

// Downstream is the latest reading; ok is false where none was made.
func (s *Store) Downstream(key hostproc.ProcessKey) (d Downstream, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok = s.downstream[key]
	return d, ok
}

// PutBusiest takes the peer that most ephemeral ports of a namespace are used towards, by
// the processes that hold connections to it. The map is not changed any more.
func (s *Store) PutBusiest(netns uint64, of map[hostproc.ProcessKey]model.Destination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busiest[netns] = of
}

// Busiest are the latest of a namespace. It must not be changed.
func (s *Store) Busiest(netns uint64) map[hostproc.ProcessKey]model.Destination {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busiest[netns]
}

// PutStacks takes what the JVMs that were asked said of their threads, in the place of all
// that was said before. What concerns no process of its own has the zero key.
func (s *Store) PutStacks(of map[hostproc.ProcessKey]Stacks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stacks = of
}

// PutAgent takes what a task of the agent says of itself, and reports whether another
// configuration is in force, or was refused.
func (s *Store) PutAgent(put func(*model.Agent)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.agent.Config
	put(&s.agent)
	return s.agent.Config != before
}
