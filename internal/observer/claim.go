package observer

import (
	"fmt"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/owner"
)

// claim is a selector that a listener is watched for.
type claim struct {
	selector
	// foreign: another process than the named one holds the port. Clients are
	// served there all the same, so it is watched, but the limits that were
	// given for the named process are not its.
	foreign bool
}

// claim tells the selectors' listeners, once their owners are known.
//
// A port of a process on which nothing of that process is seen to listen is
// not thereby down: the socket whose owner may not be looked at may be its, and
// another process may serve there. Which of the two it is, the notes say.
func (s *Sampler) claim(sc *scan) {
	for _, sel := range s.chosen.selectors {
		for _, c := range sc.all {
			if s.matches(sel, c) {
				c.claims = append(c.claims, claim{selector: sel})
			}
		}
	}
	for _, sel := range s.chosen.selectors {
		if sel.port != 0 && sel.pid != 0 {
			s.claimUnproven(sc, sel)
		}
	}
}

func (s *Sampler) claimUnproven(sc *scan, sel selector) {
	var unknown, others []*candidate
	for _, c := range sc.all {
		switch {
		case !s.mayMatch(sel, c):
		case s.matches(sel, c):
			return
		case c.owner == nil && !sc.searched[sel.pid]:
			unknown = append(unknown, c)
		case len(c.claims) > 0 && !c.claims[0].foreign:
			return // it is that of another selector
		default:
			others = append(others, c)
		}
	}
	for _, c := range unknown {
		c.claims = append(c.claims, claim{selector: sel})
		sc.notes = append(sc.notes, fmt.Sprintf("port %d: whose listener %s is cannot be known; it may be pid %d's", sel.port, c.id, sel.pid))
	}
	if len(unknown) > 0 {
		return
	}
	for _, c := range others {
		c.claims = append(c.claims, claim{selector: sel, foreign: true})
		sc.notes = append(sc.notes, fmt.Sprintf("port %d is not pid %d's: %s holds %s", sel.port, sel.pid, holder(c.owner), c.id))
	}
}

func holder(p *owner.Process) string {
	if p == nil {
		return "a process that cannot be seen"
	}
	return fmt.Sprintf("pid %d (%s)", p.PID, p.Comm)
}

// named tells whether the targets let a listener pass.
func (s *Sampler) named(c *candidate) bool {
	return s.everything(c.space) || len(c.claims) > 0
}

// expected tells whether a listener's absence would be a finding.
func (c *candidate) expected() bool {
	return slices.ContainsFunc(c.claims, func(cl claim) bool { return cl.port != 0 })
}

// target is whose settings hold for a listener: that of its port, or else that
// of its whole process; nil when it is in none.
func (c *candidate) target() *Target { return c.settings().target }

func (c *candidate) settings() (out claim) {
	for _, cl := range c.claims {
		if cl.target != nil && (out.target == nil || cl.port != 0) {
			out = cl
		}
	}
	return out
}

// limits are those that were given by hand for a listener.
func (s *Sampler) limits(c *candidate) Overrides {
	if cl := c.settings(); cl.target != nil && !cl.foreign {
		return cl.target.Limits.Or(s.opt.Limits)
	}
	return s.opt.Limits
}
