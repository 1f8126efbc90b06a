package observer

import (
	"maps"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// selection is what the options name.
type selection struct {
	selectors []selector // none: whatever there is
	all       bool       // and everything else in the general namespaces
}

// selector names a port of any process, a port of one process, or all ports of
// one process.
type selector struct {
	port   uint16  // 0: all of pid's
	pid    int     // 0: any process in the general namespaces
	target *Target // whose settings hold for it, or nil
}

func newSelection(o *Options) selection {
	var out selection
	out.add(o.Ports, o.PIDs, nil)
	out.all = o.All && len(out.selectors) == 0 // --all adds nothing to --port and --pid
	for i := range o.Targets {
		t := &o.Targets[i]
		var pids []int
		if t.PID != 0 {
			pids = []int{t.PID}
		}
		out.add(t.Ports, pids, t)
	}
	return out
}

// add names every port in every process.
func (s *selection) add(ports []uint16, pids []int, t *Target) {
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
			s.selectors = append(s.selectors, selector{port, pid, t})
		}
	}
}

// pids are the processes that are named, in whose namespaces we look.
func (s *selection) pids() (out []int) {
	for _, sel := range s.selectors {
		if sel.pid != 0 && !slices.Contains(out, sel.pid) {
			out = append(out, sel.pid)
		}
	}
	return out
}

// anybodys are the ports that are looked for in every process.
func (s *selection) anybodys() (out []uint16) {
	for _, sel := range s.selectors {
		if sel.pid == 0 && !slices.Contains(out, sel.port) {
			out = append(out, sel.port)
		}
	}
	return out
}

// wholeProcesses are the processes, when nothing but whole processes is named.
func (s *selection) wholeProcesses() []int {
	if s.all || slices.ContainsFunc(s.selectors, func(sel selector) bool { return sel.port != 0 }) {
		return nil
	}
	return s.pids()
}

// general is true when something is to be found that is no named process's.
func (s *selection) general() bool {
	return s.all || len(s.selectors) == 0 || slices.ContainsFunc(s.selectors, func(sel selector) bool { return sel.pid == 0 })
}

// expects is true for addresses that are sure to be named, whoever listens.
func (s *selection) expects(id model.ListenerID) bool {
	return s.all || slices.ContainsFunc(s.selectors, func(sel selector) bool {
		return sel.pid == 0 && sel.port == id.Address.Port()
	})
}

// looksInto tells whether a selector's listeners can be in a namespace.
func (s *Sampler) looksInto(sel selector, sp *space) bool {
	if sel.pid == 0 {
		return sp.general
	}
	return s.homes[sel.pid] == sp
}

// matches tells whether a selector names a listener.
func (s *Sampler) matches(sel selector, c *candidate) bool {
	return s.mayMatch(sel, c) && (sel.pid == 0 || (c.owner != nil && c.owner.PID == sel.pid))
}

// mayMatch is for before the owners are known.
func (s *Sampler) mayMatch(sel selector, c *candidate) bool {
	return s.looksInto(sel, c.space) && (sel.port == 0 || sel.port == c.port())
}

// everything tells whether a namespace's listeners need not be named.
func (s *Sampler) everything(sp *space) bool {
	return sp.general && (s.chosen.all || len(s.chosen.selectors) == 0)
}

// mayWant is false for listeners that were not asked for, whoever owns them.
func (s *Sampler) mayWant(c *candidate) bool {
	return s.everything(c.space) || slices.ContainsFunc(s.chosen.selectors, func(sel selector) bool { return s.mayMatch(sel, c) })
}

// targetInfos are the labels of every port that is watched or expected.
func (s *Sampler) targetInfos(kept []*candidate) []model.TargetInfo {
	var out []model.TargetInfo
	add := func(port uint16, sp *space, t *Target) {
		info := model.TargetInfo{Port: port, NetNS: uint64(sp.id)}
		if slices.ContainsFunc(out, info.Same) {
			return
		}
		info.Labels = s.opt.Labels
		if t != nil && len(t.Labels) > 0 {
			info.Labels = maps.Clone(s.opt.Labels)
			if info.Labels == nil {
				info.Labels = make(map[string]string, len(t.Labels))
			}
			maps.Copy(info.Labels, t.Labels)
		}
		out = append(out, info)
	}
	for _, c := range kept {
		add(c.port(), c.space, c.target())
	}
	for _, sp := range s.spaces {
		for _, sel := range s.chosen.selectors {
			if s.mayExpect(sel, sp) && sel.target != nil {
				add(sel.port, sp, sel.target)
			}
		}
		for _, sel := range s.chosen.selectors {
			if s.mayExpect(sel, sp) {
				add(sel.port, sp, nil)
			}
		}
	}
	return out
}
