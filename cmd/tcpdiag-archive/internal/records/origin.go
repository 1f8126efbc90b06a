package records

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Origin is where an incident was seen. What is not known is "".
type Origin struct {
	Cluster     string `json:"cluster,omitempty"`
	Host        string `json:"host,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Pod         string `json:"pod,omitempty"`
	PodUID      string `json:"pod_uid,omitempty"`
	Container   string `json:"container,omitempty"`
	ContainerID string `json:"container_id,omitempty"`
	User        string `json:"user,omitempty"` // the agent's word for the owner, where that is no pod
}

// LongestName is the most that a name in Kubernetes has (RFC 1123).
const LongestName = 253

// OriginOf is that of a recording, by what its header and one of its frames say.
func OriginOf(cluster string, h *recording.Header, l *model.Listener) Origin {
	p := Origin{Cluster: cluster, Host: Printable(h.Host)}
	if of := l.Process; of != nil {
		p.PodUID, p.ContainerID = Printable(of.PodUID), Printable(of.Container)
	}
	if of := l.Pod; of != nil {
		p.Namespace, p.Pod, p.Container = Printable(of.Namespace), Printable(of.Name), Printable(of.Container)
	}
	if uid, ok := strings.CutPrefix(h.Owner, "pod "); ok && p.PodUID == "" {
		p.PodUID = Printable(uid)
	} else if !ok {
		p.User = Printable(h.Owner)
	}
	return p
}

// Owner is whose share of the spool the incidents of a pod, or of a host's user, are.
func (p *Origin) Owner() string {
	owner := p.Host + "/" + p.Namespace + "/" + p.Pod + "/" + p.PodUID
	if p.User != "" {
		owner += "/" + p.User
	}
	return owner
}

// Printable is a name of which nobody knows who wrote it.
func Printable(name string) string {
	name = model.Printable(name)
	return name[:min(len(name), LongestName)]
}
