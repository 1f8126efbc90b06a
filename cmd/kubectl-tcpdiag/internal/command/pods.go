package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
)

// pods are those that arguments and labels select, without those that do not run.
func (o *options) pods(ctx context.Context, client *kube.Client, namespace string, args []string) (pods []core.Pod, err error) {
	if len(args) > 0 && (o.all || o.labels != "") {
		return nil, usagef("give pods by name, or -l or -A, and not both")
	}
	if len(args) == 0 {
		return running(client.Pods(ctx, namespace, o.labels, ""))
	}
	for _, arg := range args {
		some, err := named(ctx, client, namespace, arg)
		if err != nil {
			return nil, err
		}
		pods = append(pods, some...)
	}
	slices.SortStableFunc(pods, func(a, b core.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(pods, func(a, b core.Pod) bool { return a.UID == b.UID }), nil
}

// named are the pods of one argument: NAME, pod/NAME, or a workload's.
func named(ctx context.Context, client *kube.Client, namespace, arg string) ([]core.Pod, error) {
	kind, name, found := strings.Cut(arg, "/")
	if !found {
		kind, name = "pod", arg
	}
	if name == "" {
		return nil, usagef("%q: give a name", arg)
	}
	if slices.Contains([]string{"po", "pod", "pods"}, kind) {
		pod, err := client.Pod(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		if pod.Status.Phase != core.PodRunning {
			return nil, fmt.Errorf("%s/%s does not run: it is %s", namespace, name, pod.Status.Phase)
		}
		return []core.Pod{*pod}, nil
	}
	of, known := kube.KindNamed(kind)
	if !known {
		return nil, usagef("%q: give a pod, deploy/NAME, statefulset/NAME, daemonset/NAME, replicaset/NAME or job/NAME", arg)
	}
	labels, err := client.Selector(ctx, of, namespace, name)
	if err != nil {
		return nil, err
	}
	pods, err := running(client.Pods(ctx, namespace, labels, ""))
	if err == nil && len(pods) == 0 {
		err = fmt.Errorf("no pod of %s runs in namespace %s", arg, namespace)
	}
	return pods, err
}

func running(pods []core.Pod, err error) ([]core.Pod, error) {
	return slices.DeleteFunc(pods, func(p core.Pod) bool { return p.Status.Phase != core.PodRunning || p.DeletionTimestamp != nil }), err
}
