package ask

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
	"github.com/tcpdiag/tcpdiag/internal/api"
)

// Incident is one that an agent has recorded.
type Incident struct {
	api.IncidentSummary
	Agent string `json:"agent"` // namespace and name of the agent's pod
}

// hasSidecar selects the pods of the manifests.
const hasSidecar = "tcpdiag.github.io/sidecar=true"

// Incidents are those of all agents, the latest first, and what was in the way of asking
// some.
func (a *Asker) Incidents(ctx context.Context, client *kube.Client, namespace string) (found []Incident, failed []error, err error) {
	var at []kube.Agent
	agents, nodesErr := a.Agents(ctx)
	for i := range agents {
		at = append(at, AgentOf(&agents[i]))
	}
	pods, podsErr := client.Pods(ctx, namespace, hasSidecar, "status.phase=Running")
	for i := range pods {
		if c, ok := Sidecar(&pods[i]); ok {
			at = append(at, kube.Agent{Namespace: pods[i].Namespace, Pod: pods[i].Name, Port: port(c.Ports)})
		}
	}
	podsErr = a.withRole(podsErr, kube.Sidecar, namespace)
	if len(at) == 0 {
		switch {
		case nodesErr != nil:
			return nil, nil, nodesErr
		case podsErr != nil:
			return nil, nil, podsErr
		}
		return nil, nil, fmt.Errorf("no node agent runs in namespace %s (--agents-namespace), and no sidecar", a.opt.AgentsNamespace)
	}
	for _, err := range []error{nodesErr, podsErr} {
		if err != nil {
			failed = append(failed, err)
		}
	}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, agent := range at {
		g.Go(func() error {
			some, err := a.incidentsOf(ctx, agent)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, fmt.Errorf("%s/%s: %w", agent.Namespace, agent.Pod, err))
			}
			found = append(found, some...)
			return nil
		})
	}
	_ = g.Wait()
	slices.SortStableFunc(found, func(a, b Incident) int { return b.Began.Compare(a.Began) })
	return found, failed, nil
}

func (a *Asker) incidentsOf(ctx context.Context, agent kube.Agent) (found []Incident, err error) {
	body, err := a.client.Ask(ctx, agent, "/api/v1/incidents")
	if err != nil {
		return nil, a.withRole(err, kube.Sidecar, agent.Namespace)
	}
	list, err := Decode[api.Incidents](body)
	if err != nil {
		return nil, err
	}
	for i := range list.Incidents {
		found = append(found, Incident{list.Incidents[i], agent.Namespace + "/" + agent.Pod})
	}
	return found, nil
}
