package ask

import (
	"context"
	"slices"
	"strconv"

	core "k8s.io/api/core/v1"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
	"github.com/tcpdiag/tcpdiag/internal/api"
)

const (
	// containerName is what the manifests call tcpdiag's container.
	containerName = "tcpdiag"
	agentPort     = 10889
	snapshot      = "/api/v1/snapshot"
	program       = "/usr/local/bin/tcpdiag" // where the image has it
)

// sidecar is tcpdiag's container in the pod.
func (a *Asker) sidecar(pod *core.Pod) (*Source, error) {
	container, ok := Sidecar(pod)
	if !ok {
		return nil, &errNone{"the pod has no running container called " + containerName}
	}
	at := kube.Agent{Namespace: pod.Namespace, Pod: pod.Name, Port: port(container.Ports)}
	return a.within(pod, kube.Sidecar, "the sidecar", container.Name, at), nil
}

// Sidecar is the container of a pod that is tcpdiag, where it runs.
func Sidecar(pod *core.Pod) (core.Container, bool) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name != containerName {
			continue
		}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if s.Name == containerName && s.State.Running != nil {
				return c, true
			}
		}
	}
	return core.Container{}, false
}

// port is where an agent serves.
func port(ports []core.ContainerPort) int {
	for _, p := range ports {
		if p.Name == containerName || p.Name == "metrics" {
			return int(p.ContainerPort)
		}
	}
	return agentPort
}

// within asks an agent in the pod's own network and, for a thread dump, has the container's
// own user ask the JVM.
func (a *Asker) within(pod *core.Pod, way kube.Way, by, container string, at kube.Agent) *Source {
	source := &Source{Pod: pod, Way: way, By: by}
	source.ask = func(ctx context.Context) (*api.Snapshot, error) {
		if !a.opt.ThreadDump {
			return a.served(ctx, pod, at)
		}
		body, err := a.client.Exec(ctx, pod.Namespace, pod.Name, container, a.dump()...)
		if err != nil {
			return nil, err
		}
		return a.decode(body, pod)
	}
	return source
}

// served is what an agent in the pod has.
func (a *Asker) served(ctx context.Context, pod *core.Pod, at kube.Agent) (*api.Snapshot, error) {
	body, err := a.client.Ask(ctx, at, snapshot)
	if err != nil {
		return nil, err
	}
	return a.decode(body, pod)
}

func (a *Asker) decode(body []byte, pod *core.Pod) (*api.Snapshot, error) {
	s, err := decodeSnapshot(body)
	if err != nil {
		return nil, err
	}
	a.ofPod(s, pod, true)
	return s, nil
}

func (a *Asker) dump() []string {
	command := []string{program, "snapshot", "--thread-dump", "--output", "json"}
	for _, p := range a.opt.Ports {
		command = append(command, "--port", strconv.Itoa(p))
	}
	return command
}
