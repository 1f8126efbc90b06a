package main

import (
	"cmp"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// place is where an incident was seen. What is not known is "".
type place struct {
	Cluster     string `json:"cluster,omitempty"`
	Host        string `json:"host,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Pod         string `json:"pod,omitempty"`
	PodUID      string `json:"pod_uid,omitempty"`
	Container   string `json:"container,omitempty"`
	ContainerID string `json:"container_id,omitempty"`
}

// longestName is the most that a name in Kubernetes has (RFC 1123).
const longestName = 253

// placeOf is that of a recording, by what its header and one of its frames say.
func placeOf(cluster string, h *recording.Header, l *model.Listener) place {
	p := place{Cluster: cluster, Host: bounded(h.Host)}
	if of := l.Process; of != nil {
		p.PodUID, p.ContainerID = bounded(of.PodUID), bounded(of.Container)
	}
	if of := l.Pod; of != nil {
		p.Namespace, p.Pod, p.Container = bounded(of.Namespace), bounded(of.Name), bounded(of.Container)
	}
	if uid, ok := strings.CutPrefix(h.Owner, "pod "); ok && p.PodUID == "" {
		p.PodUID = bounded(uid)
	}
	return p
}

// bounded is a name of which nobody knows who wrote it.
func bounded(name string) string {
	name = model.Printable(name)
	return name[:min(len(name), longestName)]
}

// keyOf is the name of a recording's object: cluster/day/namespace/pod/ID. Those without a
// pod are below _host, those of a pod whose name is not known below _pod.
func keyOf(p *place, h *recording.Header) string {
	namespace, pod := p.Namespace, p.Pod
	switch {
	case pod == "" && p.PodUID != "":
		namespace, pod = cmp.Or(namespace, "_pod"), p.PodUID
	case pod == "":
		namespace, pod = "_host", cmp.Or(p.Host, "_")
	}
	return path.Join(segment(p.Cluster), dayOf(h.ID), segment(namespace), segment(pod), h.ID+suffix)
}

// beganAt is the time in an ID: who knows the ID knows the day.
func beganAt(id string) (time.Time, error) {
	parts := strings.Split(id, "-")
	if len(parts) != 3 {
		return time.Time{}, errors.New("no ID")
	}
	return time.Parse("20060102T150405Z", parts[1])
}

// dayForm is how a day is written in a key.
const dayForm = "2006-01-02"

func dayOf(id string) string {
	at, err := beganAt(id)
	if err != nil {
		return "_"
	}
	return at.Format(dayForm)
}

// suffix is that of a recording, sumSuffix of its checksum beside it.
const (
	suffix    = ".tcpdiag"
	sumSuffix = ".sha256"
)

// segment is a part of a key that no store and no shell takes for something else.
func segment(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '_'
	}, name)
	if strings.Trim(name, ".") == "" {
		return "_"
	}
	return name[:min(len(name), longestName)]
}
