package observer

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/target"
)

// roster is which listeners there are and which of them are watched. It is not
// changed once it is made.
type roster struct {
	at          time.Time
	places      []*namespace.Namespace
	all         []*target.Candidate // every listener of every namespace
	kept        []entry             // those that are watched
	byNetNS     map[uint64][]*entry // the same
	omitted     int                 // beyond --max-listeners
	silent      map[uint64]bool     // namespaces that did not answer
	targets     []model.Target
	infos       []model.TargetInfo
	notes       []string
	unavailable []model.Unavailable
	retired     []closedTotals // of namespaces that are closed
}

// entry is a listener that is watched.
type entry struct {
	*target.Candidate
	connector *model.Connector // with the limits given by hand
}

// process is whose listener it is; ok is false where that is not known.
func (e *entry) process() (key hostproc.ProcessKey, ok bool) {
	if e.Owner == nil {
		return key, false
	}
	return hostproc.ProcessKey{PID: e.Owner.PID, StartTime: e.Owner.StartTime}, true
}

// in are the watched listeners of a namespace.
func (r *roster) in(netns uint64) []*entry { return r.byNetNS[netns] }

// index is made once kept is whole: the clocks ask for each of many namespaces.
func (r *roster) index() {
	r.byNetNS = make(map[uint64][]*entry)
	for i := range r.kept {
		e := &r.kept[i]
		r.byNetNS[e.ID.NetNS] = append(r.byNetNS[e.ID.NetNS], e)
	}
}

// watches reports whether a listener is one of those that are watched.
func (r *roster) watches(id model.ListenerID) bool {
	return slices.ContainsFunc(r.kept, func(e entry) bool { return e.ID == id })
}

// remembers reports whether an address has an account, watched or not.
func (r *roster) remembers(id model.ListenerID) (known bool) {
	if n := r.place(id.NetNS); n != nil {
		n.Books(func(b *losses.Books) { known = b.Accounts()[id] != nil })
	}
	return known
}

// place is the namespace of that number, nil where it is not open.
func (r *roster) place(netns uint64) *namespace.Namespace {
	for _, n := range r.places {
		if n.ID == netns {
			return n
		}
	}
	return nil
}

// owners are the processes of the watched listeners, each once.
func (r *roster) owners() map[hostproc.ProcessKey]*entry {
	out := make(map[hostproc.ProcessKey]*entry)
	for i := range r.kept {
		if key, ok := r.kept[i].process(); ok && out[key] == nil {
			out[key] = &r.kept[i]
		}
	}
	return out
}

// otherPorts are those that an entry's process listens on besides.
func (r *roster) otherPorts(e *entry) (out []uint16) {
	for _, c := range r.all {
		if c.Owner != nil && c.Owner.PID == e.Owner.PID && c.Port() != e.Port() {
			out = append(out, c.Port())
		}
	}
	return out
}

// same reports whether two rosters show the same listeners behind the same limits.
func (r *roster) same(other *roster) bool {
	if len(r.kept) != len(other.kept) || len(r.targets) != len(other.targets) {
		return false
	}
	for i := range r.kept {
		a, b := &r.kept[i], &other.kept[i]
		if a.ID != b.ID || a.Worst().Inode != b.Worst().Inode || (a.Owner == nil) != (b.Owner == nil) || (a.connector == nil) != (b.connector == nil) {
			return false
		}
	}
	for i := range r.targets {
		if r.targets[i] != other.targets[i] {
			return false
		}
	}
	return true
}
