package schedule

import (
	"sync/atomic"

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
