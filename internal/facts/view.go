package facts

import (
	"maps"
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/clients/accounts"
	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
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
	Clients     *accounts.Clients // nil where none are counted
}

// Interval is what the losses and peaks span: the longest window of a namespace.
func (v *View) Interval() (longest time.Duration) {
	for i := range v.Namespaces {
		if n := &v.Namespaces[i]; n.Counted && !v.Watchlist.Silent[n.ID] {
			longest = max(longest, n.Window.Interval)
		}
	}
	return longest
}

// View is what the readers have put in.
func (s *Store) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &View{
		Self:        model.Self{Agent: s.agent},
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

// Namespace is what is known of a network namespace that is open.
type Namespace struct {
	ID       uint64
	PID      int  // of a process that was in it when it was opened, 0 where none was asked for
	Answers  bool // the latest samples were answered
	Sysctl   map[string]int
	SysctlOK bool           // it could be read again when it was due
	Sockstat map[string]int // nil where it could not be read
	Missing  []netip.Addr   // addresses of listeners to which no packet is delivered
	Sampled  []Sampled

	// What is counted, where the counters are followed.
	Counted  bool
	Window   losses.Window
	Accounts map[model.ListenerID]*losses.Report
	Down     map[uint16]*model.Losses // by expected port on which nothing listens
}

// Sampled is what the samples know of a watched listener.
type Sampled struct {
	ID     model.ListenerID
	Inode  uint32 // of the fullest member
	Queue  losses.Queue
	Drops  uint64    // of all its sockets since they were made
	Known  bool      // Drops is: the kernel reports it
	Moved  time.Time // when that last grew
	Full   time.Time // since when the queue is full, zero while it is not
	Stands time.Time // since when no sample found the queue empty, zero while it is
	Taken  uint64    // clients accepted from the queue between two samples: a lower bound
	Fell   time.Time // when a sample last found the queue of a socket shorter: somebody was accepted
	Still  time.Time // since when no sample has, nor found the queue empty; zero while it is
	Closed bool      // none of its sockets listens any more
}
