package ask

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	core "k8s.io/api/core/v1"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
)

// Silent is a node agent that has not answered.
type Silent struct {
	Agent *core.Pod
	Err   error
}

// Covered are the pods that an agent, which is there, watches a listener of, and the agents that
// did not answer: what they watch is not known.
func (a *Asker) Covered(ctx context.Context, pods []core.Pod) (covered []core.Pod, silent []Silent, err error) {
	agents, err := a.Agents(ctx)
	if err != nil && !slices.ContainsFunc(pods, func(p core.Pod) bool { _, ok := Sidecar(&p); return ok }) {
		return nil, nil, err
	}
	if err != nil {
		fmt.Fprintf(a.log, "tcpdiag: %v: only sidecars are asked\n", err)
	}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(atOnce)
	watched := map[string]bool{}
	for i := range agents {
		g.Go(func() error {
			s, err := a.ofNode(ctx, &agents[i])
			if _, denied := kube.Lacks(err); denied { // as of every other agent
				return a.withRole(err, kube.Node, a.opt.AgentsNamespace)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silent = append(silent, Silent{&agents[i], fmt.Errorf("the agent of %s: %w", agents[i].Spec.NodeName, err)})
				return nil
			}
			for j := range s.Listeners {
				if p := s.Listeners[j].Process; p != nil && p.PodUID != "" {
					watched[p.PodUID] = true
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(pods, func(p core.Pod) bool {
		_, sidecar := Sidecar(&p)
		sidecar = sidecar && p.Labels[agentLabel] != containerName
		return !sidecar && !watched[string(p.UID)]
	}), silent, nil
}
