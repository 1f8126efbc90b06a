package watchlist

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// Expected are the ports that were asked for, and whether something listens
// there: whichever it is, and whether or not it is watched. A namespace that does
// not answer has none. notes are for people.
func (r *Rules) Expected(all []*Candidate) (out []model.Target, notes []string) {
	for _, ns := range r.Namespaces {
		if ns.Silent {
			continue
		}
		add := func(port uint16) {
			t := model.Target{Port: port, NetNS: ns.ID}
			if !slices.ContainsFunc(out, t.Same) {
				t.Up = slices.ContainsFunc(all, func(c *Candidate) bool { return c.ID.NetNS == ns.ID && c.Port() == port })
				out = append(out, t)
			}
		}
		for _, sel := range r.Selectors {
			if r.mayExpect(sel, ns) {
				add(sel.Port)
			}
		}
		if r.Remember {
			for _, port := range slices.Sorted(maps.Keys(ns.Served)) {
				add(port)
			}
		}
		if asked := len(out); r.everything(ns.ID) {
			for _, port := range slices.Sorted(maps.Keys(ns.Seen)) {
				add(port)
			}
			for i := range out[asked:] {
				out[asked+i].Unasked = true
			}
		}
	}
	nowhere, notes := r.nowhere(all)
	return append(out, nowhere...), notes
}

const (
	// seenFor is for how long a port is known on which a server was watched that nobody asked for:
	// as long as the totals of its listener are shown.
	seenFor = time.Hour
	// maxSeen bounds them in a namespace: of the user that has most the oldest go.
	maxSeen = 16
)

// forgetSeen leaves no more of them than there may be.
func forgetSeen(seen map[uint16]namespace.Seen, now time.Time) {
	maps.DeleteFunc(seen, func(_ uint16, s namespace.Seen) bool { return now.Sub(s.At) >= seenFor })
	if len(seen) <= maxSeen {
		return
	}
	ports := slices.SortedFunc(maps.Keys(seen), func(a, b uint16) int { return cmp.Or(seen[a].At.Compare(seen[b].At), cmp.Compare(b, a)) })
	for _, i := range shares.Surplus(len(ports), maxSeen, func(i int) string { return fmt.Sprint(seen[ports[i]].User) }) {
		delete(seen, ports[i])
	}
}

// mayExpect reports whether a port's absence from a namespace would be a finding.
// Where all namespaces are read, not each of them serves on a port that is no
// named process's, and the agent's own need not either: it is expected where
// something has listened on it.
func (r *Rules) mayExpect(sel Selector, ns ScopedNamespace) bool {
	if sel.Port == 0 || !r.covers(sel, ns.ID) {
		return false
	}
	return sel.PID != 0 || !r.AllNamespaces || ns.Served[sel.Port]
}

// nowhere says which ports are looked for in all namespaces and none has served
// on. A one-shot snapshot asks for just that port: it is down, as one of the first
// namespace, if all could be read. For an agent it is not, as a node may have no
// pod that serves on it.
func (r *Rules) nowhere(all []*Candidate) (out []model.Target, notes []string) {
	if !r.AllNamespaces {
		return nil, nil
	}
	hidden := r.Hidden + r.silent()
	for _, port := range r.anybodys() {
		switch {
		case r.known(all, port):
		case hidden > 0:
			notes = append(notes, fmt.Sprintf("nothing listens on port %d in the network namespaces that could be looked into (%d); it may in the others (%d)",
				port, len(r.Namespaces)-r.silent(), hidden))
		default:
			notes = append(notes, fmt.Sprintf("nothing listens on port %d in any network namespace (looked into: %d)", port, len(r.Namespaces)))
			if r.OneShot {
				out = append(out, model.Target{Port: port, NetNS: r.Namespaces[0].ID})
			}
		}
	}
	return out, notes
}

// known reports whether a port that is anybody's has a listener somewhere, be it
// beyond --max-listeners, or has had one.
func (r *Rules) known(all []*Candidate, port uint16) bool {
	return slices.ContainsFunc(r.Namespaces, func(ns ScopedNamespace) bool { return ns.General && ns.Served[port] }) ||
		slices.ContainsFunc(all, func(c *Candidate) bool {
			ns := r.namespace(c.ID.NetNS)
			return ns != nil && ns.General && c.Port() == port
		})
}

// Infos are the labels of every port that is watched or expected.
func (r *Rules) Infos(labels map[string]string, selected []*Candidate) []model.TargetInfo {
	var out []model.TargetInfo
	add := func(port uint16, netns uint64, t *Target) {
		info := model.TargetInfo{Port: port, NetNS: netns}
		if !slices.ContainsFunc(out, info.Same) {
			info.Labels = labelsOf(labels, t)
			out = append(out, info)
		}
	}
	for _, c := range selected {
		add(c.Port(), c.ID.NetNS, c.target())
	}
	for _, ns := range r.Namespaces {
		for _, sel := range r.Selectors {
			if r.mayExpect(sel, ns) && sel.Target != nil {
				add(sel.Port, ns.ID, sel.Target)
			}
		}
		for _, sel := range r.Selectors {
			if r.mayExpect(sel, ns) {
				add(sel.Port, ns.ID, nil)
			}
		}
	}
	return out
}

func labelsOf(common map[string]string, t *Target) map[string]string {
	if t == nil || len(t.Labels) == 0 {
		return common
	}
	out := make(map[string]string, len(common)+len(t.Labels))
	maps.Copy(out, common)
	maps.Copy(out, t.Labels)
	return out
}
