package facts

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Watchlist is which listeners there are and which of them are watched. It is not
// changed once it is made.
type Watchlist struct {
	At          time.Time
	NetNS       []uint64     // the namespaces that are open
	All         []*Listening // every listener of every namespace
	Watched     []Watched
	byNetNS     map[uint64][]*Watched
	Omitted     int             // beyond --max-listeners
	Silent      map[uint64]bool // namespaces that did not answer
	Targets     []model.Target
	Infos       []model.TargetInfo
	Notes       []string
	Unavailable []model.Unavailable
	Retired     []ClosedTotals // of namespaces that are closed
	Unnamed     bool           // a pod is so new that its name may be there in a second
}

// Watched is a listener that is watched.
type Watched struct {
	*Listening
	Expected  bool             // its absence would be a finding
	Connector *model.Connector // with the limits given by hand
	Pod       *model.Pod       // nil outside of Kubernetes, and where its names are not known
}

// ClosedTotals are the totals of a listener that closed.
type ClosedTotals struct {
	LastSeen time.Time
	User     uint32
	model.RetainedTotals
}

// Down is since when each of the expected ports has had no listener that has none.
type Down map[portOf]time.Time

type portOf struct {
	netns uint64
	port  uint16
}

// Down is that of this list; before is that of the list before.
func (w *Watchlist) Down(before Down) Down {
	out := make(Down)
	for _, t := range w.Targets {
		if t.Up {
			continue
		}
		at := portOf{t.NetNS, t.Port}
		if out[at] = before[at]; out[at].IsZero() {
			out[at] = w.At
		}
	}
	return out
}

// Latest is when the latest of them closed, zero where there is none.
func (d Down) Latest() (latest time.Time) {
	for _, since := range d {
		if since.After(latest) {
			latest = since
		}
	}
	return latest
}

// In are the watched listeners of a namespace.
func (w *Watchlist) In(netns uint64) []*Watched { return w.byNetNS[netns] }

// Index is called once Watched is whole: the schedule asks for each of many namespaces.
func (w *Watchlist) Index() {
	w.byNetNS = make(map[uint64][]*Watched)
	for i := range w.Watched {
		e := &w.Watched[i]
		w.byNetNS[e.ID.NetNS] = append(w.byNetNS[e.ID.NetNS], e)
	}
}

// Watches reports whether a listener is one of those that are watched.
func (w *Watchlist) Watches(id model.ListenerID) bool {
	return slices.ContainsFunc(w.Watched, func(e Watched) bool { return e.ID == id })
}

// Has reports whether a namespace is open.
func (w *Watchlist) Has(netns uint64) bool { return slices.Contains(w.NetNS, netns) }

// Owners are the processes of the watched listeners, each once.
func (w *Watchlist) Owners() map[hostproc.ProcessKey]*Watched {
	out := make(map[hostproc.ProcessKey]*Watched)
	for i := range w.Watched {
		if key, ok := w.Watched[i].Process(); ok && out[key] == nil {
			out[key] = &w.Watched[i]
		}
	}
	return out
}

// OtherPorts are those that the process of a watched listener listens on besides; nil where none is known, and
// somebody listens there of whom nothing is.
func (w *Watchlist) OtherPorts(e *Watched) (out []uint16) {
	unknown := func(l *Listening) bool { return l.Owner == nil && l.ID.NetNS == e.ID.NetNS }
	if !slices.ContainsFunc(w.All, unknown) {
		out = []uint16{}
	}
	for _, l := range w.All {
		if l.Owner != nil && l.Owner.PID == e.Owner.PID && l.Port() != e.Port() {
			out = append(out, l.Port())
		}
	}
	return out
}

// Unowned are the inodes of the sockets that listen in a listener's network namespace, and whose process is not known.
func (w *Watchlist) Unowned(e *Watched) (inodes []uint32) {
	for _, l := range w.All {
		if l.Owner == nil && l.ID.NetNS == e.ID.NetNS {
			inodes = append(inodes, l.Inodes()...)
		}
	}
	return inodes
}

// Same reports whether two lists show the same listeners behind the same limits.
func (w *Watchlist) Same(other *Watchlist) bool {
	if len(w.Watched) != len(other.Watched) || len(w.Targets) != len(other.Targets) {
		return false
	}
	for i := range w.Watched {
		a, b := &w.Watched[i], &other.Watched[i]
		if a.ID != b.ID || a.Worst().Inode != b.Worst().Inode || (a.Owner == nil) != (b.Owner == nil) || (a.Connector == nil) != (b.Connector == nil) || !samePod(a.Pod, b.Pod) {
			return false
		}
	}
	for i := range w.Targets {
		a, b := w.Targets[i], other.Targets[i]
		a.Elsewhere, a.Draining = b.Elsewhere, b.Draining
		if a != b {
			return false
		}
	}
	return true
}

func samePod(a, b *model.Pod) bool { return a == b || a != nil && b != nil && *a == *b }
