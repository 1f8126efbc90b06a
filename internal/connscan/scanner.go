// Package connscan reads the connections of one network namespace at a time: by a walk
// through the kernel's table, by exact requests for the connections that a walk has found,
// or by exact requests for a random part of thousands that are calm. One reading serves
// everything that is wanted at that moment: the watched listeners' connections by phase,
// and the outgoing connections of their processes. What it found is put into facts.
//
// Read scanner.go first, then walk.go. It is for one goroutine at a time.
package connscan

import (
	"maps"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Scanner reads the connections of the watched listeners, and remembers what spares it the
// next walk.
type Scanner struct {
	proc     hostproc.FS
	now      func() time.Time
	memories map[uint64]*memory // by namespace
	peers    outgoingMemory

	store *facts.Store

	figures connections.Figures
	busy    map[uint64]lastSearch // by namespace
	of      *facts.Watchlist      // all that is remembered is of it

	mostDescriptors int // that one reading or search follows
}

// memory is what is remembered of a namespace's connections.
type memory struct {
	timeWait connections.TimeWaits
	resets   connections.Resets
	closed   map[model.ListenerID]*leftBehind
	known    known
	outgoing knownOutgoing
	strange  strangers
	queued   map[model.ListenerID]uint32 // the socket, if clients stood in its queue at the latest walk
}

// New makes a Scanner that puts what it reads into store.
func New(proc hostproc.FS, store *facts.Store, now func() time.Time) *Scanner {
	return &Scanner{
		proc: proc, now: now, memories: make(map[uint64]*memory), peers: newOutgoingMemory(),
		store: store, busy: make(map[uint64]lastSearch), mostDescriptors: hostproc.MostDescriptors,
	}
}

func (s *Scanner) memory(netns uint64) *memory {
	t := s.memories[netns]
	if t == nil {
		t = &memory{closed: make(map[model.ListenerID]*leftBehind), queued: make(map[model.ListenerID]uint32), strange: strangers{of: make(map[uint32]holder)}}
		s.memories[netns] = t
	}
	return t
}

// Retain forgets what is not in a list.
func (s *Scanner) Retain(r *facts.Watchlist) {
	if s.of == r {
		return
	}
	s.of = r
	live := make(map[model.ListenerID]bool, len(r.Watched))
	for i := range r.Watched {
		live[r.Watched[i].ID] = true
	}
	for id, t := range s.memories {
		if !r.Has(id) {
			delete(s.memories, id)
			continue
		}
		maps.DeleteFunc(t.closed, func(listener model.ListenerID, _ *leftBehind) bool { return !live[listener] })
		maps.DeleteFunc(t.queued, func(listener model.ListenerID, _ uint32) bool { return !live[listener] })
	}
	for id := range s.busy {
		if !r.Has(id) {
			delete(s.busy, id)
		}
	}
	s.retainProcesses(r)
	s.figures.Retain(live)
}

// Remembered is how many connections of watched ports are known so that they can be
// asked for exactly.
func (s *Scanner) Remembered(netns uint64) int {
	t := s.memory(netns)
	if t.known.at.IsZero() {
		return 0
	}
	return len(t.known.watched.ids)
}

// ForgetConnections has the next reading of each namespace be a walk.
func (s *Scanner) ForgetConnections() {
	for _, t := range s.memories {
		t.known.forget()
	}
}

// ForgetOutgoing has the next reading of each namespace take the outgoing connections along.
func (s *Scanner) ForgetOutgoing() { clear(s.peers.last) }
