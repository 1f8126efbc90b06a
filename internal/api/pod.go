package api

import "github.com/tcpdiag/tcpdiag/internal/model"

// Pod is whose listener it is in Kubernetes.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Container string `json:"container,omitempty"`
	UID       string `json:"uid,omitempty"`
}

func newPod(p *model.Pod) *Pod {
	if p == nil {
		return nil
	}
	return &Pod{Namespace: p.Namespace, Name: p.Name, Container: p.Container, UID: p.UID}
}

func (p *Pod) model() *model.Pod {
	if p == nil {
		return nil
	}
	return &model.Pod{Namespace: p.Namespace, Name: p.Name, Container: p.Container, UID: p.UID}
}
