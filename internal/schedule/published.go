package schedule

import (
	"sync/atomic"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// published is the latest snapshot.
type published struct {
	latest atomic.Pointer[model.Snapshot]
	next   atomic.Pointer[chan struct{}] // closed when there is another one
}

func (p *published) begin() { p.next.Store(new(make(chan struct{}))) }

func (p *published) store(s *model.Snapshot) {
	p.latest.Store(s)
	close(*p.next.Swap(new(make(chan struct{}))))
}

// Snapshot is what was published last, nil before the first. It must not be
// changed.
func (s *Scheduler) Snapshot() *model.Snapshot { return s.published.latest.Load() }

// Next is closed when another snapshot is published. Ask for it before Snapshot, and
// none is missed.
func (s *Scheduler) Next() <-chan struct{} { return *s.published.next.Load() }

// Follow has the clients be in all snapshots from the next one on.
func (s *Scheduler) Follow(c Clients) { s.collector.clients.Store(&c) }

// PutStacks takes what the JVMs that were asked for thread dumps said; the snapshot that
// shows it is brought forward.
func (s *Scheduler) PutStacks(of map[hostproc.ProcessKey]facts.Stacks) {
	s.facts.PutStacks(of)
	s.bells.publish.ring()
}

// PutAgent takes what another task of the agent says of itself. The snapshot that shows another
// configuration is brought forward.
func (s *Scheduler) PutAgent(put func(*model.Agent)) {
	if s.facts.PutAgent(put) {
		s.bells.publish.ring()
	}
}
