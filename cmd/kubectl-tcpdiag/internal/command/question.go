package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/ask"
	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
)

const (
	// renewEvery is how often a watch looks for pods that are new.
	renewEvery = 10 * time.Second
	// renewFailing is the same while one does not answer.
	renewFailing = time.Second
)

// question is what a command line asks for, and who is asked.
type question struct {
	*options
	client    *kube.Client
	asker     *ask.Asker
	namespace string
	args      []string
	at        time.Time // of the latest selection of pods
}

// results are the first answers of all that are selected.
func (o *options) results(cmd *cobra.Command, args []string) ([]result, error) {
	_, results, err := o.question(cmd, args)
	return results, err
}

func (o *options) question(cmd *cobra.Command, args []string) (*question, []result, error) {
	client, asker, namespace, err := o.asker(cmd)
	if err != nil {
		return nil, nil, err
	}
	q := &question{options: o, client: client, asker: asker, namespace: namespace, args: args}
	ctx := cmd.Context()
	pods, err := q.find(ctx)
	if err != nil {
		return nil, nil, err
	}
	results, err := q.open(ctx, pods, nil)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case err != nil:
		return nil, nil, err
	case len(results) == 0:
		return nil, nil, fmt.Errorf("no sidecar and no node agent watches any of the %d pods %s: name one, and it is asked by an ephemeral container", len(pods), in(namespace))
	}
	return q, results, nil
}

// find is the pods that are meant. An error has the Role that the right to find them is in.
func (q *question) find(ctx context.Context) ([]core.Pod, error) {
	q.at = time.Now()
	pods, err := q.pods(ctx, q.client, q.namespace, q.args)
	if err == nil {
		return pods, nil
	}
	way := q.ask.Via
	if way == "" {
		way = kube.Sidecar
	}
	return nil, ask.WithRole(err, way, q.namespace, q.ask.AgentsNamespace)
}

// open asks the pods for the first time but for those that have answered. Where none is
// named nothing is added to any: those are asked of which an agent that is there watches a
// listener, and an agent that does not answer is a result of its own.
func (q *question) open(ctx context.Context, pods []core.Pod, answered map[types.UID]result) (results []result, err error) {
	var silent []ask.Silent
	if len(q.args) == 0 && q.labels == "" {
		if pods, silent, err = q.asker.Covered(ctx, pods); err != nil {
			return nil, err
		}
	}
	fresh := slices.DeleteFunc(slices.Clone(pods), func(p core.Pod) bool { _, is := answered[p.UID]; return is })
	opened := map[types.UID]result{}
	for _, r := range open(ctx, q.asker, fresh) {
		opened[r.pod.UID] = r
	}
	for i := range pods {
		if r, is := answered[pods[i].UID]; is {
			results = append(results, r)
		} else {
			results = append(results, opened[pods[i].UID])
		}
	}
	for _, s := range silent {
		results = append(results, result{pod: s.Agent, err: s.Err})
	}
	return results, nil
}

// renewed are the results of a watch with the pods that are there by now: those that have taken
// the place of others, and those whose agent is another.
func (q *question) renewed(ctx context.Context, results []result) []result {
	every := renewEvery
	if answered(results) < len(results) {
		every = renewFailing
	}
	if time.Since(q.at) < every {
		return results
	}
	well := map[types.UID]result{}
	for _, r := range results {
		if r.err == nil {
			well[r.pod.UID] = r
		}
	}
	pods, err := q.find(ctx)
	if err == nil {
		q.asker.Forget()
		var next []result
		if next, err = q.open(ctx, pods, well); err == nil && len(next) > 0 {
			return next
		}
	}
	for i := range results {
		if err != nil && results[i].err != nil {
			results[i].err = err
		}
	}
	return results
}
