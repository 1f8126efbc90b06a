package watchlist

import (
	"maps"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
)

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
		if w.Pod == nil && r.Lister.Namespaces.Find(w.ID.NetNS).Own && !r.opt.AllNamespaces {
			w.Pod = r.Sources.Pod.Of(pods[key])
		}
		missed = missed || w.Pod == nil && ok && pods[key].UID != ""
	}
	if names != nil && missed { // in its own pod tcpdiag needs no folder of the kubelet's
		r.miss.Add(names.Unavailable()...)
	}
}
