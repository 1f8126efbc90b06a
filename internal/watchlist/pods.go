package watchlist

import (
	"maps"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
)

// namePods says of the watched listeners whose pods' they are.
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
		names.Look(slices.Collect(maps.Values(pods)), r.OneShot)
		r.Unnamed = names.Waiting()
		r.miss.Add(names.Unavailable()...)
	}
	for i := range r.Watched {
		w := &r.Watched[i]
		key, ok := w.Process()
		if ok && names != nil {
			w.Pod = names.Of(pods[key])
		}
		if w.Pod == nil && r.Lister.Namespaces.Find(w.ID.NetNS).Own && !r.opt.AllNamespaces {
			w.Pod = r.Sources.Pod.Of(pods[key])
		}
	}
}
