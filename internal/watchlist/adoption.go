package watchlist

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// adoption collects namespaces.
type adoption struct {
	p       *Namespaces
	window  time.Duration
	list    []*namespace.Namespace
	fresh   []*namespace.Namespace
	homes   map[int]uint64
	general map[uint64]bool
}

// open finds or opens the namespace of a process, 0 for the caller's own.
func (o *adoption) add(pid int, general bool) error {
	if pid != 0 {
		if _, err := o.p.src.Proc.Process(pid); err != nil {
			if errors.Is(err, hostproc.ErrNoProcess) {
				err = hostproc.ErrNoProcess // said in one line
			}
			return fmt.Errorf("pid %d: %w", pid, err)
		}
	}
	n, err := o.p.enter(pid, o.window)
	if err != nil {
		return err
	}
	if err := n.Prepare(); err != nil {
		return errors.Join(err, n.Close())
	}
	same := func(other *namespace.Namespace) bool { return other.ID == n.ID }
	if i := slices.IndexFunc(o.list, same); i >= 0 {
		err, n = n.Close(), o.list[i]
	} else if known := o.p.Find(n.ID); known != nil {
		err, n = n.Close(), known
		o.list = append(o.list, n)
	} else {
		o.list, o.fresh = append(o.list, n), append(o.fresh, n)
	}
	o.general[n.ID] = o.general[n.ID] || general
	if !general {
		o.homes[pid] = n.ID
	}
	return err
}

// undo closes what was opened.
func (o *adoption) undo() error {
	var errs []error
	for _, n := range o.fresh {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// adopt makes the options' namespaces those that are open: it opens the ones
// they name in addition to those that are open already, and closes those that nothing
// names any more. When one cannot be opened, all stays as it was.
func (p *Namespaces) adopt(o *Options) error {
	next := adoption{p: p, homes: make(map[int]uint64), general: make(map[uint64]bool), window: o.Window}
	selected := o.Selection()
	inside := o.Inside
	if len(inside) == 0 && selected.General() {
		inside = []int{0}
	}
	for _, pid := range inside {
		if err := next.add(pid, true); err != nil {
			return errors.Join(err, next.undo())
		}
	}
	for _, pid := range selected.PIDs() {
		if err := next.add(pid, false); err != nil {
			return errors.Join(err, next.undo())
		}
	}
	p.replace(&next, o, &selected)
	return nil
}

func (p *Namespaces) replace(next *adoption, o *Options, selected *Selection) {
	previous := p.All
	p.All, p.homes = next.list, next.homes
	for _, n := range p.All {
		n.Discovered = false
		configure(n, next.general[n.ID] || o.AllNamespaces, selected)
	}
	for _, n := range previous {
		switch {
		case p.Find(n.ID) != nil:
		case o.AllNamespaces:
			n.Discovered = true
			configure(n, true, selected)
			p.All = append(p.All, n)
		default:
			p.retire(n, o.Now())
		}
	}
	for _, n := range next.fresh {
		n.Books(func(b *losses.Books) {
			for _, a := range p.Retired.Take(n.ID) {
				b.Put(a)
			}
		})
	}
}

// configure gives a namespace what the options say.
func configure(n *namespace.Namespace, general bool, selected *Selection) {
	n.General = general
	n.Expect(func(id model.ListenerID) bool { return general && selected.Expects(id) })
	maps.DeleteFunc(n.Served, func(port uint16, _ bool) bool { return !selected.Ports(port) })
}
