package observer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// candidate is a listening address as a LISTEN dump shows it, with its owner.
type candidate struct {
	id        model.ListenerID
	space     *space
	members   []sockdiag.Listener
	owner     *owner.Process
	connector *model.Connector
	claims    []claim  // why it is watched, but for all and Tomcats
	account   *account // of the kept ones
}

func (c *candidate) port() uint16 { return c.id.Address.Port() }

// worst is the member whose queue is fullest.
func (c *candidate) worst() *sockdiag.Listener {
	return slicesMax(c.members, func(l *sockdiag.Listener) float64 { return ratio(l.RecvQ, l.SendQ) })
}

func slicesMax[T any](list []T, key func(*T) float64) *T {
	best := &list[0]
	for i := range list {
		if key(&list[i]) > key(best) {
			best = &list[i]
		}
	}
	return best
}

// group puts the members of SO_REUSEPORT groups together.
func group(sp *space, listeners []sockdiag.Listener) []*candidate {
	var out []*candidate
	byID := make(map[model.ListenerID]*candidate, len(listeners))
	for i := range listeners {
		id := sp.listenerID(&listeners[i].ListenerID)
		c, ok := byID[id]
		if !ok {
			c = &candidate{id: id, space: sp}
			byID[id], out = c, append(out, c)
		}
		c.members = append(c.members, listeners[i])
	}
	return out
}

// wanted keeps the listeners that the targets name: by port, by process, all,
// or else Tomcat's. note is set when there was no Tomcat and so all are kept.
func (s *Sampler) wanted(sc *scan) (kept []*candidate, note string) {
	all := sc.all
	named := slices.DeleteFunc(slices.Clone(all), func(c *candidate) bool { return !s.named(c) })
	if pids := s.chosen.wholeProcesses(); len(named) == 0 && len(pids) > 0 && len(sc.mute) == 0 {
		return named, fmt.Sprintf("nothing listens on a TCP port in pid %s", strings.Trim(fmt.Sprint(pids), "[]"))
	}
	if s.chosen.all || len(s.chosen.selectors) > 0 {
		return named, ""
	}
	for _, c := range all {
		if c.connector != nil && c.connector.Server == "tomcat" {
			kept = append(kept, c)
		}
	}
	if len(kept) > 0 || s.watchesUnseen(sc) {
		return kept, ""
	}
	if s.opt.AllNamespaces {
		return nil, fmt.Sprintf("no Tomcat found; network namespaces looked into: %d", len(s.spaces))
	}
	if len(all) == 0 {
		return all, "no Tomcat found, and nothing listens in this network namespace"
	}
	return all, "no Tomcat found: showing everything that listens"
}

// watchesUnseen tells whether a namespace that did not tell its listeners has
// some that are watched.
func (s *Sampler) watchesUnseen(sc *scan) bool {
	return slices.ContainsFunc(s.spaces, func(sp *space) bool { return sc.mute[sp] && len(sp.watches) > 0 })
}

// order sorts by namespace, port, address, and device: the order of the screen
// and of the JSON, and what decides who is beyond --max-listeners.
func order(list []*candidate) {
	slices.SortFunc(list, func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(a.port(), b.port()),
			cmp.Compare(a.id.NetNS, b.id.NetNS),
			a.id.Address.Compare(b.id.Address),
			cmp.Compare(a.id.Device, b.id.Device),
		)
	})
}

// listenerID is the address as people know it, v4-mapped ones unmapped.
func (sp *space) listenerID(l *sockdiag.ListenerID) model.ListenerID {
	id := model.ListenerID{NetNS: uint64(sp.id), Address: l.Address()}
	if l.Interface != 0 {
		id.Device = sp.device(l.Interface)
	}
	return id
}
