package observer

import (
	"errors"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/target"
)

// OpenFunc opens the namespace of a process, 0 for the caller's own.
type OpenFunc func(shared *namespace.Shared, pid int) (namespace.Opened, error)

// places are the network namespaces that are open. One goroutine at a time
// changes them, that of the rosters.
type places struct {
	src     *Sources
	shared  *namespace.Shared
	open    OpenFunc
	list    []*namespace.Namespace
	home    map[int]uint64 // of the processes that are named
	census  census
	retired losses.Retired // accounts of namespaces that are closed
	settle  func(*losses.Account)
}

func newPlaces(src *Sources) *places {
	p := &places{src: src, shared: new(namespace.Shared), open: src.Open, settle: func(*losses.Account) {}, home: make(map[int]uint64)}
	if p.open == nil {
		p.open = func(shared *namespace.Shared, pid int) (namespace.Opened, error) {
			return namespace.Open(src.Proc, src.Mount, shared, pid)
		}
	}
	return p
}

// find is the open namespace of that number, nil for none.
func (p *places) find(id uint64) *namespace.Namespace {
	i := slices.IndexFunc(p.list, func(n *namespace.Namespace) bool { return n.ID == id })
	if i < 0 {
		return nil
	}
	return p.list[i]
}

// enter opens the namespace of a process.
func (p *places) enter(pid int, window time.Duration) (*namespace.Namespace, error) {
	o, err := p.open(p.shared, pid)
	if err != nil {
		return nil, err
	}
	n := namespace.New(uint64(o.ID), o.Net, o.Kernel, p.shared, window)
	n.Own = o.Net == 0
	return n, nil
}

// scope is what the selectors have to know of them.
func (p *places) scope(o *Options, silent map[uint64]bool, oneShot bool) target.Scope {
	out := target.Scope{Home: p.home, AllNamespaces: o.AllNamespaces, Hidden: p.census.closed, OneShot: oneShot}
	for _, n := range p.list {
		out.Namespaces = append(out.Namespaces, target.Namespace{
			ID: n.ID, General: n.General, Silent: silent[n.ID], Watches: n.Watches(), Served: n.Served,
		})
	}
	return out
}

// leave closes a namespace and keeps what its listeners have lost. What a closed
// namespace of the same number has left of an address is forgotten: the kernel
// gives numbers again, and the series are named by them. The counters then start
// from nothing, as the kernel's own do, which rate() and increase() can read.
func (p *places) leave(n *namespace.Namespace, now time.Time) {
	left := n.Leave(now)
	for _, a := range left {
		p.settle(a)
		p.retired.Remove(func(old *losses.Account) bool { return old.ID == a.ID })
	}
	p.retired.Add(left...)
}

func (p *places) close() error {
	var errs []error
	for _, n := range p.list {
		errs = append(errs, n.Close())
	}
	p.list = nil
	return errors.Join(errs...)
}
