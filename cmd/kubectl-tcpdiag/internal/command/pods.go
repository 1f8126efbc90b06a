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

// pods are those that arguments and labels select, without those that do not run. That none
// runs is an error, which says why.
func (o *options) pods(ctx context.Context, client *kube.Client, namespace string, args []string) (pods []core.Pod, err error) {
	if len(args) > 0 && (o.all || o.labels != "") {
		return nil, usagef("give pods by name, or -l or -A, and not both")
	}
	if len(args) == 0 {
		return o.selected(ctx, client, namespace)
	}
	args, err = joined(args)
	if err != nil {
		return nil, err
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

// selected are the pods of a namespace, "" for all, that have the labels.
func (o *options) selected(ctx context.Context, client *kube.Client, namespace string) ([]core.Pod, error) {
	pods, err := client.Pods(ctx, namespace, o.labels, "")
	if err != nil {
		return nil, err
	}
	what, remedy := "no pod", "-n or -A selects other namespaces"
	if o.labels != "" {
		what, remedy = fmt.Sprintf("no pod with labels %s", o.labels), "kubectl get pods --show-labels "+flag(namespace)+" lists what they have"
	}
	return running(pods, what, namespace, remedy)
}

// running leaves the pods that run. Where none does, the error begins with what.
func running(pods []core.Pod, what, namespace, remedy string) ([]core.Pod, error) {
	why := ""
	left := slices.DeleteFunc(slices.Clone(pods), func(p core.Pod) bool {
		not := kube.NotRunning(&p)
		if not != "" && why == "" {
			why = fmt.Sprintf("of %d, %s: %s", len(pods), p.Name, not)
		}
		return not != ""
	})
	if len(left) > 0 {
		return left, nil
	}
	if why == "" {
		return nil, fmt.Errorf("%s is %s: %s", what, in(namespace), remedy)
	}
	return nil, fmt.Errorf("%s runs %s: %s", what, in(namespace), why)
}

// in is a namespace in words, flag as kubectl takes it.
func in(namespace string) string {
	if namespace == "" {
		return "in the cluster"
	}
	return "in namespace " + namespace
}

func flag(namespace string) string {
	if namespace == "" {
		return "-A"
	}
	return "-n " + namespace
}

// joined are the arguments with TYPE NAME… as TYPE/NAME, which kubectl takes, too.
func joined(args []string) ([]string, error) {
	_, known := kube.KindNamed(args[0])
	if !known && !isPod(args[0]) {
		return args, nil
	}
	if len(args) == 1 {
		return nil, usagef("%s: which one? %s/NAME", args[0], args[0])
	}
	var out []string
	for _, name := range args[1:] {
		if strings.Contains(name, "/") {
			return nil, usagef("give TYPE NAME or TYPE/NAME, and not both: %s", strings.Join(args, " "))
		}
		out = append(out, args[0]+"/"+name)
	}
	return out, nil
}

func isPod(kind string) bool { return slices.Contains([]string{"po", "pod", "pods"}, kind) }

// named are the pods of one argument: NAME, pod/NAME, or a workload's.
func named(ctx context.Context, client *kube.Client, namespace, arg string) ([]core.Pod, error) {
	kind, name, found := strings.Cut(arg, "/")
	if !found {
		kind, name = "pod", arg
	}
	if name == "" {
		return nil, usagef("%q: give a name", arg)
	}
	if namespace == "" {
		return nil, usagef("%q: give its namespace", arg)
	}
	if isPod(kind) {
		return onePod(ctx, client, namespace, name)
	}
	of, known := kube.KindNamed(kind)
	if !known {
		return nil, usagef("%q: give a pod, deploy/NAME, statefulset/NAME, daemonset/NAME, replicaset/NAME or job/NAME, or select its pods with -l", arg)
	}
	workload, err := client.Workload(ctx, of, namespace, name)
	if kube.NotThere(err) {
		return nil, fmt.Errorf("%s is not in namespace %s: kubectl get %s -A lists those of all", arg, namespace, of.Names[0])
	}
	if err != nil {
		return nil, err
	}
	pods, err := client.Pods(ctx, namespace, workload.Selector, "")
	if err != nil {
		return nil, err
	}
	remedy := fmt.Sprintf("kubectl describe -n %s %s says why", namespace, arg)
	if workload.Replicas != nil && *workload.Replicas == 0 {
		remedy = fmt.Sprintf("it is scaled to 0 (kubectl scale -n %s %s --replicas=1)", namespace, arg)
	}
	return running(pods, "no pod of "+arg, namespace, remedy)
}

func onePod(ctx context.Context, client *kube.Client, namespace, name string) ([]core.Pod, error) {
	pod, err := client.Pod(ctx, namespace, name)
	switch {
	case kube.NotThere(err):
		return nil, fmt.Errorf("no pod is called %s in namespace %s: kubectl get pods -A lists those of all%s", name, namespace, workloadCalled(ctx, client, namespace, name))
	case err != nil:
		return nil, err
	}
	if why := kube.NotRunning(pod); why != "" {
		return nil, fmt.Errorf("%s/%s does not run: %s; kubectl describe pod -n %s %s says more", namespace, name, why, namespace, name)
	}
	return []core.Pod{*pod}, nil
}

// workloadCalled hints at a workload of the name that was given for a pod's, if there is one.
func workloadCalled(ctx context.Context, client *kube.Client, namespace, name string) string {
	for _, k := range kube.Kinds() {
		if _, err := client.Workload(ctx, k, namespace, name); err == nil {
			return fmt.Sprintf("; %s/%s is a workload", k.Names[0], name)
		}
	}
	return ""
}
