package command

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	document "github.com/tcpdiag/tcpdiag/internal/api"
)

// What people ask that cannot be answered: one line each, with what to do.
func TestEachMistakeHasOneLineWithTheRemedy(t *testing.T) {
	waiting := func(reason, message string) core.ContainerState {
		return core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	another := httptest.NewServer(http.NotFoundHandler())
	defer another.Close()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	nobodyThere := l.Addr().String()
	tests := map[string]struct {
		make func(c *cluster, pod *core.Pod)
		args []string
		want string
	}{
		"context":           {nil, []string{"orders-1", "--context", "prod"}, `context "prod" does not exist: kubectl config get-contexts lists those that are there`},
		"kubeconfig":        {nil, []string{"orders-1", "--kubeconfig", "/nowhere"}, "/nowhere"},
		"unreachable":       {nil, []string{"orders-1", "--server", "http://" + nobodyThere}, "the API server cannot be asked, dial tcp " + nobodyThere + ": connect: connection refused: kubectl cluster-info"},
		"another server":    {nil, []string{"orders-1", "--server", another.URL}, "what answers there is no API server of Kubernetes, or one that does not know pods: kubectl cluster-info"},
		"no such pod":       {nil, []string{"basket"}, "no pod is called basket in namespace shop: kubectl get pods -A lists those of all"},
		"a workload's name": {nil, []string{"orders"}, "no pod is called orders in namespace shop: kubectl get pods -A lists those of all; deploy/orders is a workload"},
		"no such workload":  {nil, []string{"deploy/basket"}, "deploy/basket is not in namespace shop: kubectl get deploy -A"},
		"no name":           {nil, []string{"deploy"}, "deploy: which one? deploy/NAME"},
		"unknown type":      {nil, []string{"svc/orders"}, `"svc/orders": give a pod, deploy/NAME`},
		"scaled to 0": {
			func(c *cluster, pod *core.Pod) { c.replicas = 0; delete(c.pods, "shop/orders-1") },
			[]string{"deploy/orders"},
			"no pod of deploy/orders is in namespace shop: it is scaled to 0 (kubectl scale -n shop deploy/orders --replicas=1)",
		},
		"no pods": {
			func(c *cluster, pod *core.Pod) { delete(c.pods, "shop/orders-1") },
			[]string{"deploy/orders"},
			"no pod of deploy/orders is in namespace shop: kubectl describe -n shop deploy/orders says why",
		},
		"no labels":      {nil, []string{"-l", "app=basket"}, "no pod with labels app=basket is in namespace shop: kubectl get pods --show-labels -n shop lists what they have"},
		"labels of all":  {nil, []string{"-A", "-l", "app=basket"}, "no pod with labels app=basket is in the cluster: kubectl get pods --show-labels -A"},
		"no namespace":   {nil, []string{"-n", "shpo"}, "no pod is in namespace shpo: -n or -A selects other namespaces"},
		"nobody watches": {nil, []string{"-A"}, "no sidecar and no node agent watches any of the 1 pods in the cluster: name one"},
		"unschedulable": {func(_ *cluster, pod *core.Pod) {
			pod.Status.Phase = core.PodPending
			pod.Status.Conditions = []core.PodCondition{{Type: core.PodScheduled, Status: core.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: 1 node(s) were unschedulable."}}
		}, []string{"orders-1"}, "shop/orders-1 does not run: it is Pending, on no node yet (Unschedulable: 0/1 nodes are available: 1 node(s) were unschedulable.); kubectl describe pod -n shop orders-1"},
		"drained": {func(_ *cluster, pod *core.Pod) {
			pod.Status.Phase = core.PodPending
			pod.Status.Conditions = []core.PodCondition{{Type: core.PodScheduled, Status: core.ConditionFalse, Reason: "Unschedulable"}}
		}, []string{"deploy/orders"}, "no pod of deploy/orders runs in namespace shop: of 1, orders-1: it is Pending, on no node yet (Unschedulable)"},
		"init container": {func(_ *cluster, pod *core.Pod) {
			pod.Status.Phase = core.PodPending
			pod.Status.InitContainerStatuses = []core.ContainerStatus{
				{Name: "certs", Ready: true, State: core.ContainerState{Terminated: &core.ContainerStateTerminated{}}},
				{Name: "migrate", State: waiting("CrashLoopBackOff", "back-off 10s"), LastTerminationState: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}},
			}
		}, []string{"orders-1"}, "it is Pending: init container migrate waits (CrashLoopBackOff: back-off 10s), ended last with exit code 1 (Error)"},
		"init container runs": {func(_ *cluster, pod *core.Pod) {
			pod.Status.Phase = core.PodPending
			pod.Spec.InitContainers = []core.Container{{Name: "mesh", RestartPolicy: new(core.ContainerRestartPolicyAlways)}, {Name: "migrate"}}
			runs := core.ContainerState{Running: &core.ContainerStateRunning{}}
			pod.Status.InitContainerStatuses = []core.ContainerStatus{{Name: "mesh", Started: new(true), State: runs}, {Name: "migrate", Started: new(true), State: runs}}
		}, []string{"orders-1"}, "it is Pending: init container migrate runs, and has not ended"},
		"its own image": {func(_ *cluster, pod *core.Pod) {
			pod.Status.Phase = core.PodPending
			pod.Status.ContainerStatuses[0].State = waiting("ImagePullBackOff", "")
		}, []string{"orders-1"}, "it is Pending: container app waits (ImagePullBackOff)"},
		"crashing": {func(_ *cluster, pod *core.Pod) {
			pod.Status.ContainerStatuses[0].State = waiting("CrashLoopBackOff", "")
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &core.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
		}, []string{"orders-1"}, "shop/orders-1: container app waits (CrashLoopBackOff), ended last with exit code 137 (OOMKilled): kubectl logs -n shop orders-1 -c app --previous"},
		"evicted": {func(_ *cluster, pod *core.Pod) {
			pod.Status.Phase, pod.Status.Reason, pod.Status.Message = core.PodFailed, "Evicted", "The node was low on\nresource: memory."
		}, []string{"orders-1"}, "it has failed (Evicted: The node was low on resource: memory.)"},
		"completed": {func(_ *cluster, pod *core.Pod) { pod.Status.Phase = core.PodSucceeded }, []string{"orders-1"}, "it has completed"},
		"deleted":   {func(_ *cluster, pod *core.Pod) { pod.DeletionTimestamp = new(meta.Now()) }, []string{"orders-1"}, "it is being deleted"},
		"Windows": {func(_ *cluster, pod *core.Pod) {
			pod.Spec.NodeSelector = map[string]string{core.LabelOSStable: "windows"}
		}, []string{"orders-1"}, "it is for Windows nodes: tcpdiag reads Linux's kernel"},
		"container": {nil, []string{"orders-1", "-c", "web"}, `shop/orders-1: the pod has no container "web"; -c takes one of app, proxy`},
		"no JVM": {func(c *cluster, pod *core.Pod) {
			c.answer("shop/orders-1:10899", snapshotPath, overloaded(c.t, pod, func(s *document.Snapshot) { s.Listeners = nil }))
		}, []string{"orders-1", "-c", "proxy"}, "has found no JVM that listens in container proxy: -c takes one of app, proxy; --port takes a port"},
		"image": {func(c *cluster, _ *core.Pod) {
			c.starts = func(s *core.ContainerStatus) {
				s.State = waiting("ImagePullBackOff", "Back-off pulling image: not found")
			}
		}, []string{"orders-1"}, "does not run: ImagePullBackOff: Back-off pulling image: not found; --image takes one that n1 can pull, --via node needs none"},
		"node is gone": {
			func(c *cluster, _ *core.Pod) { c.starts = func(s *core.ContainerStatus) { s.State.Running = nil } },
			[]string{"orders-1", "--timeout", "300ms"},
			"does not run: not after 300ms: the kubelet of n1 has not started it (kubectl get node n1)",
		},
		"no agent":   {nil, []string{"orders-1", "--via", "node"}, "no agent runs on n1 in namespace tcpdiag (--agents-namespace)"},
		"no sidecar": {nil, []string{"orders-1", "--via", "sidecar"}, "shop/orders-1: the pod has no running container called tcpdiag"},
		"admission": {func(c *cluster, pod *core.Pod) {
			delete(c.pods, "shop/orders-1")
			pod.Namespace = "guarded"
			c.pods["guarded/orders-1"] = pod
		}, []string{"orders-1", "-n", "guarded"}, `violates PodSecurity "restricted:latest": runAsNonRoot != true; the namespace admits no such pod since it has run, so nothing can be added: --via node adds nothing to it`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			pod := c.add("orders-1", "n1", "app", "proxy")
			for i := range pod.Status.ContainerStatuses {
				pod.Status.ContainerStatuses[i].User = &core.ContainerUser{Linux: &core.LinuxContainerUser{UID: 1, GID: 1}}
			}
			if test.make != nil {
				test.make(c, pod)
			}
			stdout, stderr, code := c.run(test.args...)
			require.NotZero(t, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, test.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		})
	}
}

// kubectl takes both, and prints the second.
func TestNamesAsKubectlTakesThem(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app", "tcpdiag")
	c.answer("shop/orders-1:10889", snapshotPath, overloaded(t, pod, nil))
	for _, args := range [][]string{{"deploy", "orders"}, {"deployment.apps/orders"}, {"pod", "orders-1"}, {"orders-1", "deploy/orders"}} {
		stdout, stderr, code := c.run(args...)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, why)
	}
}

// Which of several containers is seen: the one that is named, else the pod's default, else the first.
func TestOneOfSeveralContainers(t *testing.T) {
	for want, change := range map[string]func(*core.Pod) []string{
		"proxy": func(*core.Pod) []string { return nil },
		"app": func(p *core.Pod) []string {
			p.Annotations = map[string]string{"kubectl.kubernetes.io/default-container": "app"}
			return nil
		},
		"cache": func(*core.Pod) []string { return []string{"-c", "cache"} },
	} {
		c := newCluster(t)
		pod := c.add("orders-1", "n1", "proxy", "app", "cache")
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].User = &core.ContainerUser{Linux: &core.LinuxContainerUser{UID: 1, GID: 1}}
		}
		c.answer("shop/orders-1:10899", snapshotPath, overloaded(t, pod, func(s *document.Snapshot) { s.Listeners[0].Process.Container = want }))
		_, stderr, code := c.run(append([]string{"orders-1"}, change(pod)...)...)
		require.Zero(t, code, stderr)
		require.Contains(t, stderr, ", which sees container "+want+" (-c: proxy, app, cache)")
		require.Equal(t, want, c.ephemerals[0].TargetContainerName)
	}
}

// A container that waits for its image is waited for again: none can be removed.
func TestWaitingContainersDoNotPileUp(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app")
	pod.Status.ContainerStatuses[0].User = &core.ContainerUser{Linux: &core.LinuxContainerUser{UID: 1, GID: 1}}
	c.starts = func(s *core.ContainerStatus) {
		s.State = core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "ErrImagePull"}}
	}
	for range 2 {
		_, _, code := c.run("orders-1", "--timeout", "200ms")
		require.Equal(t, 1, code)
	}
	require.Len(t, c.ephemerals, 1)
	pod.Status.EphemeralContainerStatuses[0].State = core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: meta.NewTime(time.Now())}}
	c.answer("shop/orders-1:10899", snapshotPath, overloaded(t, pod, nil))
	_, stderr, code := c.run("orders-1")
	require.Zero(t, code, stderr)
	require.Len(t, c.ephemerals, 1)
}
