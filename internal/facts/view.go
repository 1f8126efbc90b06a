package facts

import (
	"maps"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// View is all that is known at one moment, each with its own time. It is not changed.
type View struct {
	Time         time.Time
	Host, Kernel string
	Self         model.Self
	Watchlist    *Watchlist
	Namespaces   []Namespace
	Retained     []model.RetainedTotals // of listeners that are not there, the latest first

	Connections map[model.ListenerID]Recent[*connections.Found]
	Judgements  map[model.ListenerID]Recent[evidence.Judgement]
	Processes   map[hostproc.ProcessKey]Process
	Forgotten   map[hostproc.ProcessKey]Forgotten
	Downstream  map[hostproc.ProcessKey]Downstream
	Busiest     map[uint64]map[hostproc.ProcessKey]model.Destination
	Stacks      map[hostproc.ProcessKey]Stacks
	Unread      map[uint64]error
}

// View is what the readers have put in.
func (s *Store) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &View{
		Connections: maps.Clone(s.connections), Judgements: maps.Clone(s.judgements), Processes: maps.Clone(s.processes),
		Forgotten: maps.Clone(s.forgotten), Downstream: maps.Clone(s.downstream), Busiest: maps.Clone(s.busiest), Unread: maps.Clone(s.unread), Stacks: s.stacks,
	}
}

// Namespace is what is known of a namespace, nil where it is not open.
func (v *View) Namespace(id uint64) *Namespace {
	for i := range v.Namespaces {
		if v.Namespaces[i].ID == id {
			return &v.Namespaces[i]
		}
	}
	return nil
}
