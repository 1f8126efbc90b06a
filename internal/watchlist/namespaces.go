package watchlist

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// OpenFunc opens the namespace of a process, 0 for the caller's own.
type OpenFunc func(shared *namespace.Shared, pid int) (namespace.Opened, error)

// Namespaces are the network namespaces that are open. One goroutine at a time
// changes them, the one that lists.
type Namespaces struct {
	src     *Sources
	Shared  *namespace.Shared
	enterBy OpenFunc
	All     []*namespace.Namespace
	homes   map[int]uint64 // of the processes that are named
	Search  Search
	Retired losses.Retired // accounts of namespaces that are closed
	Settle  func(*losses.Account)
}

func newNamespaces(src *Sources) *Namespaces {
	p := &Namespaces{src: src, Shared: new(namespace.Shared), enterBy: src.Open, Settle: func(*losses.Account) {}, homes: make(map[int]uint64)}
	if p.enterBy == nil {
		p.enterBy = func(shared *namespace.Shared, pid int) (namespace.Opened, error) {
			return namespace.Open(src.Proc, src.Mount, shared, pid)
		}
	}
	return p
}

// Find is the open namespace of that number, nil for none.
func (p *Namespaces) Find(id uint64) *namespace.Namespace {
	i := slices.IndexFunc(p.All, func(n *namespace.Namespace) bool { return n.ID == id })
	if i < 0 {
		return nil
	}
	return p.All[i]
}

// enter opens the namespace of a process.
func (p *Namespaces) enter(pid int, window time.Duration) (*namespace.Namespace, error) {
	o, err := p.enterBy(p.Shared, pid)
	if err != nil {
		return nil, err
	}
	n := namespace.New(uint64(o.ID), o.Net, o.Kernel, p.Shared, window)
	n.OfAgent, n.PID = o.Net == 0, pid
	return n, nil
}

// scope is what the selectors have to know of them.
func (p *Namespaces) scope(o *Options, silent map[uint64]bool, oneShot bool) Scope {
	out := Scope{Namespace: p.homes, AllNamespaces: o.AllNamespaces, Hidden: p.Search.Hidden, OneShot: oneShot, Remember: o.Remember}
	for _, n := range p.All {
		out.Namespaces = append(out.Namespaces, ScopedNamespace{
			ID: n.ID, General: n.General, Silent: silent[n.ID], Watches: n.Watches(), Served: n.Served, Seen: n.Seen,
		})
	}
	return out
}

// retire closes a namespace and keeps what its listeners have lost. What a closed
// namespace of the same number has left of an address is forgotten: the kernel
// gives numbers again, and the series are named by them. The counters then start
// from nothing, as the kernel's own do, which rate() and increase() can read.
func (p *Namespaces) retire(n *namespace.Namespace, now time.Time) {
	left := n.Leave(now)
	for _, a := range left {
		p.Settle(a)
		p.Retired.Remove(func(old *losses.Account) bool { return old.ID == a.ID })
	}
	p.Retired.Add(left...)
}

// Close lets all namespaces go.
func (p *Namespaces) Close() error {
	var errs []error
	for _, n := range p.All {
		errs = append(errs, n.Close())
	}
	p.All = nil
	return errors.Join(errs...)
}

// namePods says of the watched listeners, and of the servers elsewhere that are spoken of, whose pods' they
// are. All are looked for at once: names forgets the others.
func (r *listing) namePods() {
	pods := make(map[hostproc.ProcessKey]cgroup.Pod)
	for i := range r.Watched {
		key, ok := r.Watched[i].Process()
		if !ok {
			continue
		}
		pod, known := r.pods[key] // a container's process does not leave its cgroup
		if !known {
			pod = cgroup.PodOf(r.Sources.Proc, key.PID)
		}
		pods[key] = pod
	}
	r.pods = pods
	names := r.names
	if names != nil {
		elsewhere := r.elsewhere.named()
		all := slices.Collect(maps.Values(pods))
		for _, e := range elsewhere {
			all = append(all, cgroup.PodOf(r.Sources.Proc, e.PID))
		}
		names.Refresh(all, r.OneShot)
		for i, e := range elsewhere {
			e.Pod = names.Of(all[len(pods)+i])
		}
		r.Unnamed = names.Waiting()
	}
	missed := false
	for i := range r.Watched {
		w := &r.Watched[i]
		key, ok := w.Process()
		if ok && names != nil {
			w.Pod = names.Of(pods[key])
		}
		if w.Pod == nil && r.Lister.Namespaces.Find(w.ID.NetNS).OfAgent && !r.opt.AllNamespaces {
			w.Pod = r.Sources.Pod.Of(pods[key])
		}
		missed = missed || w.Pod == nil && ok && pods[key].UID != ""
	}
	if names != nil && missed { // in its own pod tcpdiag needs no folder of the kubelet's
		r.miss.Add(names.Unavailable()...)
	}
}
