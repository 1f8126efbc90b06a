package target

import (
	"maps"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Infos are the labels of every port that is watched or expected.
func (r *Rules) Infos(labels map[string]string, kept []*Candidate) []model.TargetInfo {
	var out []model.TargetInfo
	add := func(port uint16, netns uint64, t *Target) {
		info := model.TargetInfo{Port: port, NetNS: netns}
		if !slices.ContainsFunc(out, info.Same) {
			info.Labels = labelsOf(labels, t)
			out = append(out, info)
		}
	}
	for _, c := range kept {
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
