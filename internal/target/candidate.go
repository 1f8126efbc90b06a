package target

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Candidate is a listening address as a LISTEN dump shows it, with its owner.
type Candidate struct {
	ID        model.ListenerID
	Members   []sockdiag.Listener // several under SO_REUSEPORT
	Owner     *owner.Process
	Connector *model.Connector
	// Unavailable is what discovery could not read of its process.
	Unavailable []model.Unavailable

	claims []claim // why it is watched, but for all and Tomcats
}

// Port is the port it listens on.
func (c *Candidate) Port() uint16 { return c.ID.Address.Port() }

// Worst is the member whose queue is fullest.
func (c *Candidate) Worst() *sockdiag.Listener {
	best := &c.Members[0]
	for i := range c.Members {
		if m := &c.Members[i]; ratio(m) > ratio(best) {
			best = m
		}
	}
	return best
}

// ratio is 1.0 for a full queue: it holds limit + 1.
func ratio(l *sockdiag.Listener) float64 { return float64(l.RecvQ) / (float64(l.SendQ) + 1) }

// Inodes are those of its sockets.
func (c *Candidate) Inodes() []uint32 {
	out := make([]uint32, len(c.Members))
	for i := range c.Members {
		out[i] = c.Members[i].Inode
	}
	return out
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
			c = &Candidate{ID: id}
			byID[id], out = c, append(out, c)
		}
		c.Members = append(c.Members, listeners[i])
	}
	return out
}

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

// silent counts the namespaces that did not answer.
func (r *Rules) silent() (n int) {
	for i := range r.Namespaces {
		if r.Namespaces[i].Silent {
			n++
		}
	}
	return n
}

// silentWatch tells whether one of them has listeners that are watched.
func (r *Rules) silentWatch() bool {
	return slices.ContainsFunc(r.Namespaces, func(ns Namespace) bool { return ns.Silent && ns.Watches })
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
