package kubelet

import (
	"os"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Self is the pod that tcpdiag itself runs in, as its manifest says by the downward API:
// POD_NAMESPACE, POD_NAME and POD_UID, and in CONTAINER the name of the container beside it. The zero
// value knows none.
type Self struct {
	pod    *model.Pod
	shared bool // the network with the node: not all that listens there is the pod's
}

// NewSelf reads the environment; uid is the pod's by tcpdiag's own cgroup, "" where that does not show
// it.
func NewSelf(getenv func(string) string, uid string) Self {
	p := model.Pod{Namespace: getenv("POD_NAMESPACE"), Name: getenv("POD_NAME"), Container: getenv("CONTAINER"), UID: getenv("POD_UID")}
	if !isLabel(p.Namespace) || !isSubdomain(p.Name) || uid != "" && p.UID != "" && uid != p.UID {
		return Self{}
	}
	if !isLabel(p.Container) {
		p.Container = ""
	}
	if !cgroup.IsUID(p.UID) {
		p.UID = uid
	}
	return Self{pod: &p, shared: inNodesNetwork()}
}

// inNodesNetwork reports whether this is the kernel's first network namespace: no other has this
// sysctl.
func inNodesNetwork() bool {
	_, err := os.Stat("/proc/sys/net/core/netdev_max_backlog")
	return err == nil
}

// Of is the pod of what listens in tcpdiag's own network namespace, by the cgroup of its process,
// if it has one that may be seen.
func (o Self) Of(c cgroup.Pod) *model.Pod {
	switch {
	case o.pod == nil, c.UID != "" && c.UID != o.pod.UID, c.UID == "" && o.shared:
		return nil
	}
	return o.pod
}
