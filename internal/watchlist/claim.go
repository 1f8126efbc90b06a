package watchlist

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// claim is a selector that a listener is watched for.
type claim struct {
	Selector
	// foreign: another process than the named one holds the port. Clients are
	// served there all the same, so it is watched, but the limits that were
	// given for the named process are not its.
	foreign bool
}

// Claim assigns the selectors to their listeners, once the owners are known, and
// returns what people should know of it. searched are the named processes whose
// descriptors could be read.
//
// A port of a process on which nothing of that process is seen to listen is
// not thereby down: the socket whose owner may not be read may be its, and
// another process may serve there. Which of the two it is, the notes say.
func (r *Rules) Claim(all []*Candidate, searched map[int]bool) (notes []string) {
	for _, sel := range r.Selectors {
		for _, c := range all {
			if r.matches(sel, c) {
				c.claims = append(c.claims, claim{Selector: sel})
			}
		}
	}
	for _, sel := range r.Selectors {
		if sel.Port != 0 && sel.PID != 0 {
			notes = append(notes, r.claimUnproven(all, sel, searched[sel.PID])...)
		}
	}
	return notes
}

func (r *Rules) claimUnproven(all []*Candidate, sel Selector, searched bool) (notes []string) {
	var unknown, others []*Candidate
	for _, c := range all {
		switch {
		case !r.mayMatch(sel, c):
		case r.matches(sel, c):
			return nil
		case c.Owner == nil && !searched:
			unknown = append(unknown, c)
		case len(c.claims) > 0 && !c.claims[0].foreign:
			return nil // it is that of another selector
		default:
			others = append(others, c)
		}
	}
	for _, c := range unknown {
		c.claims = append(c.claims, claim{Selector: sel})
		notes = append(notes, fmt.Sprintf("port %d: whose listener %s is cannot be known; it may be pid %d's", sel.Port, c.ID, sel.PID))
	}
	if len(unknown) > 0 {
		return notes
	}
	for _, c := range others {
		c.claims = append(c.claims, claim{Selector: sel, foreign: true})
		notes = append(notes, fmt.Sprintf("port %d is not pid %d's: %s holds %s", sel.Port, sel.PID, holder(c.Owner), c.ID))
	}
	return notes
}

func holder(p *owner.Process) string {
	if p == nil {
		return "a process that cannot be seen"
	}
	return fmt.Sprintf("pid %d (%s)", p.PID, model.Escape(p.Comm))
}

// named reports whether the targets let a listener pass.
func (r *Rules) named(c *Candidate) bool {
	return r.everything(c.ID.NetNS) || len(c.claims) > 0
}

// Expected reports whether a listener's absence would be a finding.
func (c *Candidate) Expected() bool {
	return slices.ContainsFunc(c.claims, func(cl claim) bool { return cl.Port != 0 })
}

// target is whose settings hold for a listener: that of its port, or else that
// of its whole process; nil when it is in none.
func (c *Candidate) target() *Target { return c.settings().Target }

func (c *Candidate) settings() (out claim) {
	for _, cl := range c.claims {
		if cl.Target != nil && (out.Target == nil || cl.Port != 0) {
			out = cl
		}
	}
	return out
}

// Limits are those that were given by hand for a listener, common those for all.
func (c *Candidate) Limits(common Overrides) Overrides {
	if cl := c.settings(); cl.Target != nil && !cl.foreign {
		return cl.Target.Limits.Or(common)
	}
	return common
}

// Select returns the listeners that the targets name: by port, by process, all, or
// else Tomcat's. note is set when there was no Tomcat and so all are kept. They
// come in the order of the screen and of the JSON.
func (r *Rules) Select(all []*Candidate) (selected []*Candidate, note string) {
	selected, note = r.filter(all)
	Order(selected)
	return selected, note
}

func (r *Rules) filter(all []*Candidate) (selected []*Candidate, note string) {
	named := slices.DeleteFunc(slices.Clone(all), func(c *Candidate) bool { return !r.named(c) })
	if pids := r.wholeProcesses(); len(named) == 0 && len(pids) > 0 && r.silent() == 0 {
		return named, fmt.Sprintf("nothing listens on a TCP port in pid %s", strings.Trim(fmt.Sprint(pids), "[]"))
	}
	if !r.Empty() {
		return named, ""
	}
	for _, c := range all {
		if c.Discovered.Kind().Limits {
			selected = append(selected, c)
		}
	}
	if len(selected) > 0 || r.silentWatch() || r.remembers() {
		return selected, ""
	}
	if r.AllNamespaces {
		return nil, fmt.Sprintf("no Tomcat found; network namespaces looked into: %d", len(r.Namespaces))
	}
	if len(all) == 0 {
		return slices.Clone(all), "no Tomcat found, and nothing listens in this network namespace"
	}
	return slices.Clone(all), "no Tomcat found: showing everything that listens"
}

// remembers reports whether one of them has had a server that is expected to come back.
func (r *Rules) remembers() bool {
	return r.Remember && slices.ContainsFunc(r.Namespaces, func(ns ScopedNamespace) bool { return len(ns.Served) > 0 })
}

// silentWatch reports whether one of them has listeners that are watched.
func (r *Rules) silentWatch() bool {
	return slices.ContainsFunc(r.Namespaces, func(ns ScopedNamespace) bool { return ns.Silent && ns.Watches })
}

// Candidate is a listening address that may be selected.
type Candidate struct {
	facts.Listening
	// Discovered is what stands behind it, without the limits given by hand.
	Discovered *model.Connector
	// Unavailable is what discovery could not read of its process.
	Unavailable []model.Unavailable

	claims []claim // why it is watched, but for all and Tomcats
}

// Group puts the members of SO_REUSEPORT groups together.
// ids are their names.
func Group(ids []model.ListenerID, listeners []sockdiag.Listener) []*Candidate {
	var out []*Candidate
	byID := make(map[model.ListenerID]*Candidate, len(listeners))
	for i := range listeners {
		id := ids[i]
		c, ok := byID[id]
		if !ok {
			c = &Candidate{Listening: facts.Listening{ID: id}}
			byID[id], out = c, append(out, c)
		}
		c.Members = append(c.Members, listeners[i])
	}
	return out
}

// Order sorts by port, namespace, address, and device: the order of the screen
// and of the JSON, and what decides who is beyond --max-listeners.
func Order(list []*Candidate) {
	slices.SortFunc(list, func(a, b *Candidate) int {
		return cmp.Or(
			cmp.Compare(a.Port(), b.Port()),
			cmp.Compare(a.ID.NetNS, b.ID.NetNS),
			a.ID.Address.Compare(b.ID.Address),
			cmp.Compare(a.ID.Device, b.ID.Device),
		)
	})
}
