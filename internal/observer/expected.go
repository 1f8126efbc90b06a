package observer

import (
	"fmt"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// expectedPorts are the ports that were asked for, and whether something listens
// there: whoever it is, and whether or not it is watched. A namespace that does
// not tell its listeners has none.
func (s *Sampler) expectedPorts(sc *scan) []model.Target {
	var out []model.Target
	for _, sp := range s.spaces {
		if sc.mute[sp] {
			continue
		}
		for _, sel := range s.chosen.selectors {
			t := model.Target{Port: sel.port, NetNS: uint64(sp.id)}
			if !s.mayExpect(sel, sp) || slices.ContainsFunc(out, t.Same) {
				continue
			}
			t.Up = slices.ContainsFunc(sc.all, func(c *candidate) bool { return c.space == sp && c.port() == sel.port })
			out = append(out, t)
		}
	}
	return append(out, s.nowhere(sc)...)
}

// mayExpect tells whether a port's absence from a namespace would be a finding.
// Where all namespaces are looked into, not each of them serves on a port that
// is no named process's, and the agent's own need not either: it is expected
// where something has listened on it.
func (s *Sampler) mayExpect(sel selector, sp *space) bool {
	if sel.port == 0 || !s.looksInto(sel, sp) {
		return false
	}
	return sel.pid != 0 || !s.opt.AllNamespaces || sp.served[sel.port]
}

// serve remembers that an expected port has had a listener here, as long as the
// namespace is there.
func (sp *space) serve(c *candidate) {
	if c.expected() {
		sp.served[c.port()] = true
	}
}

// nowhere tells of the ports that are looked for in all namespaces and that none
// has served on. Who looks once is asking for just that port: it is down, as one
// of the first namespace, if all could be looked into. For an agent it is not,
// as a node may have no pod that serves on it.
func (s *Sampler) nowhere(sc *scan) (out []model.Target) {
	if !s.opt.AllNamespaces {
		return nil
	}
	hidden := s.discovery.closed + len(sc.mute)
	for _, port := range s.chosen.anybodys() {
		switch {
		case s.known(sc, port):
		case hidden > 0:
			sc.notes = append(sc.notes, fmt.Sprintf("nothing listens on port %d in the network namespaces that could be looked into (%d); it may in the others (%d)",
				port, len(s.spaces)-len(sc.mute), hidden))
		default:
			sc.notes = append(sc.notes, fmt.Sprintf("nothing listens on port %d in any network namespace (looked into: %d)", port, len(s.spaces)))
			if s.once {
				out = append(out, model.Target{Port: port, NetNS: uint64(s.spaces[0].id)})
			}
		}
	}
	return out
}

// known tells whether a port that is anybody's has a listener somewhere, be it
// beyond --max-listeners, or has had one.
func (s *Sampler) known(sc *scan, port uint16) bool {
	return slices.ContainsFunc(s.spaces, func(sp *space) bool { return sp.general && sp.served[port] }) ||
		slices.ContainsFunc(sc.all, func(c *candidate) bool { return c.space.general && c.port() == port })
}
