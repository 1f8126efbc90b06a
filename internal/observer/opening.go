package observer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// opening collects namespaces.
type opening struct {
	p       *places
	window  time.Duration
	list    []*namespace.Namespace
	fresh   []*namespace.Namespace
	home    map[int]uint64
	general map[uint64]bool
}

// open finds or opens the namespace of a process, 0 for the caller's own.
func (o *opening) open(pid int, general bool) error {
	if pid != 0 {
		if _, err := o.p.src.Proc.Process(pid); err != nil {
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
	} else if known := o.p.find(n.ID); known != nil {
		err, n = n.Close(), known
		o.list = append(o.list, n)
	} else {
		o.list, o.fresh = append(o.list, n), append(o.fresh, n)
	}
	o.general[n.ID] = o.general[n.ID] || general
	if !general {
		o.home[pid] = n.ID
	}
	return err
}

// undo closes what was opened.
func (o *opening) undo() error {
	var errs []error
	for _, n := range o.fresh {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}
