package watchlist

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// Selection is what the options name.
type Selection struct {
	Selectors []Selector // none: whatever there is
	All       bool       // and everything else in the general namespaces
}

// Selector names a port of any process, a port of one process, or all ports of
// one process.
type Selector struct {
	Port   uint16  // 0: all of PID's
	PID    int     // 0: any process in the general namespaces
	Target *Target // whose settings hold for it, or nil
}

// Select names every port in every process, and what the targets name. All adds
// nothing to ports and processes.
func Select(ports []uint16, pids []int, all bool, targets []Target) Selection {
	var out Selection
	out.add(ports, pids, nil)
	out.All = all && len(out.Selectors) == 0
	for i := range targets {
		t := &targets[i]
		var pids []int
		if t.PID != 0 {
			pids = []int{t.PID}
		}
		out.add(t.Ports, pids, t)
	}
	return out
}

func (s *Selection) add(ports []uint16, pids []int, t *Target) {
	if len(ports) == 0 && len(pids) == 0 {
		return
	}
	if len(ports) == 0 {
		ports = []uint16{0}
	}
	if len(pids) == 0 {
		pids = []int{0}
	}
	for _, port := range ports {
		for _, pid := range pids {
			s.Selectors = append(s.Selectors, Selector{port, pid, t})
		}
	}
}

// Empty says that nothing is named, so that Tomcats are selected.
func (s *Selection) Empty() bool { return !s.All && len(s.Selectors) == 0 }

// PIDs are the processes that are named, whose namespaces are read.
func (s *Selection) PIDs() (out []int) {
	for _, sel := range s.Selectors {
		if sel.PID != 0 && !slices.Contains(out, sel.PID) {
			out = append(out, sel.PID)
		}
	}
	return out
}

// anybodys are the ports that are looked for in every process.
func (s *Selection) anybodys() (out []uint16) {
	for _, sel := range s.Selectors {
		if sel.PID == 0 && !slices.Contains(out, sel.Port) {
			out = append(out, sel.Port)
		}
	}
	return out
}

// wholeProcesses are the processes, when nothing but whole processes is named.
func (s *Selection) wholeProcesses() []int {
	if s.All || slices.ContainsFunc(s.Selectors, func(sel Selector) bool { return sel.Port != 0 }) {
		return nil
	}
	return s.PIDs()
}

// General is true when something is to be found that is no named process's.
func (s *Selection) General() bool {
	return s.All || len(s.Selectors) == 0 || slices.ContainsFunc(s.Selectors, func(sel Selector) bool { return sel.PID == 0 })
}

// Expects is true for addresses that are sure to be selected, whichever process listens.
func (s *Selection) Expects(id model.ListenerID) bool {
	return s.All || slices.ContainsFunc(s.Selectors, func(sel Selector) bool {
		return sel.PID == 0 && sel.Port == id.Address.Port()
	})
}

// Ports reports whether a port is named.
func (s *Selection) Ports(port uint16) bool {
	return slices.ContainsFunc(s.Selectors, func(sel Selector) bool { return sel.Port == port })
}

// Scope is where the selectors apply: the namespaces that are open.
type Scope struct {
	Namespaces    []ScopedNamespace
	Namespace     map[int]uint64 // namespaces of the processes that are named
	AllNamespaces bool           // every one that has a process
	Hidden        int            // of these, those that may not be entered
	OneShot       bool           // no further snapshot follows
	Remember      bool           // what has had a server is expected
}

// ScopedNamespace is one of them.
type ScopedNamespace struct {
	ID      uint64
	General bool                      // selectors without a process apply here
	Silent  bool                      // it did not answer: its listeners are those of the latest answer
	Watches bool                      // something in it is watched
	Served  map[uint16]bool           // expected ports that have had a listener
	Seen    map[uint16]namespace.Seen // ports that nobody asked for
}

// Rules are what is selected, and where.
type Rules struct {
	Selection
	Scope
}

func (s *Scope) namespace(id uint64) *ScopedNamespace {
	for i := range s.Namespaces {
		if s.Namespaces[i].ID == id {
			return &s.Namespaces[i]
		}
	}
	return nil
}

// covers reports whether a selector's listeners can be in a namespace.
func (r *Rules) covers(sel Selector, netns uint64) bool {
	if sel.PID == 0 {
		ns := r.namespace(netns)
		return ns != nil && ns.General
	}
	home, known := r.Namespace[sel.PID]
	return known && home == netns
}

// matches reports whether a selector names a listener.
func (r *Rules) matches(sel Selector, c *Candidate) bool {
	return r.mayMatch(sel, c) && (sel.PID == 0 || (c.Owner != nil && c.Owner.PID == sel.PID))
}

// mayMatch is for before the owners are known.
func (r *Rules) mayMatch(sel Selector, c *Candidate) bool {
	return r.covers(sel, c.ID.NetNS) && (sel.Port == 0 || sel.Port == c.Port())
}

// everything reports whether a namespace's listeners need not be named.
func (r *Rules) everything(netns uint64) bool {
	ns := r.namespace(netns)
	return ns != nil && ns.General && (r.All || len(r.Selectors) == 0)
}

// MaySelect is false for listeners that were not asked for, whichever process owns them.
func (r *Rules) MaySelect(c *Candidate) bool {
	return r.everything(c.ID.NetNS) || slices.ContainsFunc(r.Selectors, func(sel Selector) bool { return r.mayMatch(sel, c) })
}

// MayBe reports whether a listener is one of those that are wanted of a process,
// should it be its.
func (r *Rules) MayBe(pid int, c *Candidate) bool {
	return slices.ContainsFunc(r.Selectors, func(sel Selector) bool { return sel.PID == pid && r.mayMatch(sel, c) })
}

// silent counts the namespaces that did not answer.
func (r *Rules) silent() (n int) {
	for i := range r.Namespaces {
		if r.Namespaces[i].Silent {
			n++
		}
	}
	return n
}
