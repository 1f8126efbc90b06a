package ask

import (
	"context"
	"fmt"
	"slices"

	core "k8s.io/api/core/v1"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
	"github.com/tcpdiag/tcpdiag/internal/api"
)

// node is the agent of the pod's node.
func (a *Asker) node(ctx context.Context, pod *core.Pod) (*Source, error) {
	agents, err := a.agents(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(agents, func(p core.Pod) bool { return p.Spec.NodeName == pod.Spec.NodeName })
	if i < 0 {
		return nil, &errNone{fmt.Sprintf("no agent runs on %s in namespace %s (--agents-namespace)", pod.Spec.NodeName, a.opt.AgentsNamespace)}
	}
	source := &Source{Pod: pod, Way: kube.Node, By: "the agent of " + pod.Spec.NodeName}
	source.ask = func(ctx context.Context) (*api.Snapshot, error) {
		s, err := a.ofNode(ctx, &agents[i])
		if err != nil {
			return nil, err
		}
		a.ofPod(s, pod, false)
		if len(s.Listeners) == 0 {
			return nil, &errNone{fmt.Sprintf("the agent of %s watches no listener of this pod", pod.Spec.NodeName)}
		}
		return s, nil
	}
	return source, nil
}

// ofNode is all that the agent of a node has: one answer serves all pods of the node that are
// asked for at the time.
func (a *Asker) ofNode(ctx context.Context, agent *core.Pod) (*api.Snapshot, error) {
	body, err := a.said.of(AgentOf(agent), func(at kube.Agent) ([]byte, error) { return a.client.Ask(ctx, at, snapshot) })
	if err != nil {
		return nil, err
	}
	return decodeSnapshot(body)
}

// AgentOf is where a node agent's pod serves.
func AgentOf(pod *core.Pod) kube.Agent {
	at := kube.Agent{Namespace: pod.Namespace, Pod: pod.Name, Port: agentPort}
	for _, c := range pod.Spec.Containers {
		if c.Name == containerName {
			at.Port = port(c.Ports)
		}
	}
	return at
}

// Agents are the node agents of the cluster.
func (a *Asker) Agents(ctx context.Context) ([]core.Pod, error) {
	agents, err := a.agents(ctx)
	return agents, a.withRole(err, kube.Node, a.opt.AgentsNamespace)
}
