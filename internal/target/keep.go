package target

import (
	"fmt"
	"slices"
	"strings"
)

// Keep returns the listeners that the targets name: by port, by process, all, or
// else Tomcat's. note is set when there was no Tomcat and so all are kept. They
// come in the order of the screen and of the JSON.
func (r *Rules) Keep(all []*Candidate) (kept []*Candidate, note string) {
	kept, note = r.keep(all)
	Order(kept)
	return kept, note
}

func (r *Rules) keep(all []*Candidate) (kept []*Candidate, note string) {
	named := slices.DeleteFunc(slices.Clone(all), func(c *Candidate) bool { return !r.named(c) })
	if pids := r.wholeProcesses(); len(named) == 0 && len(pids) > 0 && r.silent() == 0 {
		return named, fmt.Sprintf("nothing listens on a TCP port in pid %s", strings.Trim(fmt.Sprint(pids), "[]"))
	}
	if !r.Empty() {
		return named, ""
	}
	for _, c := range all {
		if c.Connector != nil && c.Connector.Server == "tomcat" {
			kept = append(kept, c)
		}
	}
	if len(kept) > 0 || r.silentWatch() {
		return kept, ""
	}
	if r.AllNamespaces {
		return nil, fmt.Sprintf("no Tomcat found; network namespaces looked into: %d", len(r.Namespaces))
	}
	if len(all) == 0 {
		return slices.Clone(all), "no Tomcat found, and nothing listens in this network namespace"
	}
	return slices.Clone(all), "no Tomcat found: showing everything that listens"
}

// silentWatch reports whether one of them has listeners that are watched.
func (r *Rules) silentWatch() bool {
	return slices.ContainsFunc(r.Namespaces, func(ns Namespace) bool { return ns.Silent && ns.Watches })
}
