package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What people have that cannot be asked: pods that do not run, for each of the usual reasons, and
// namespaces that admit less.
const troubled = `
apiVersion: v1
kind: Namespace
metadata: {name: troubled}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: asleep, namespace: troubled}
spec:
  replicas: 0
  selector: {matchLabels: {app: asleep}}
  template:
    metadata: {labels: {app: asleep}}
    spec: {containers: [{name: app, image: "pause:test", imagePullPolicy: Never}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: homeless, namespace: troubled}
spec:
  selector: {matchLabels: {app: homeless}}
  template:
    metadata: {labels: {app: homeless}}
    spec: {nodeSelector: {nowhere: "true"}, containers: [{name: app, image: "pause:test", imagePullPolicy: Never}]}
---
apiVersion: v1
kind: Pod
metadata: {name: windows, namespace: troubled}
spec: {os: {name: windows}, containers: [{name: app, image: "pause:test", imagePullPolicy: Never}]}
---
apiVersion: v1
kind: Pod
metadata: {name: initializing, namespace: troubled}
spec:
  terminationGracePeriodSeconds: 0
  initContainers: [{name: wait, image: "pause:test", imagePullPolicy: Never}]
  containers: [{name: app, image: "pause:test", imagePullPolicy: Never}]
---
apiVersion: v1
kind: Pod
metadata: {name: imageless, namespace: troubled}
spec: {containers: [{name: app, image: "nowhere:test", imagePullPolicy: Never}]}
---
apiVersion: v1
kind: Pod
metadata: {name: crashing, namespace: troubled}
spec: {containers: [{name: app, image: "tcpdiag/tcpdiag:0.1.0", imagePullPolicy: Never, args: [nonsense]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: idle, namespace: troubled, labels: {app: idle}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - {name: app, image: "pause:test", imagePullPolicy: Never, securityContext: {runAsUser: 1001, runAsGroup: 1001}}
    - {name: proxy, image: "pause:test", imagePullPolicy: Never, securityContext: {runAsUser: 1001, runAsGroup: 1001}}
---
apiVersion: v1
kind: Pod
metadata: {name: root, namespace: troubled}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: app, image: "pause:test", imagePullPolicy: Never, securityContext: {runAsUser: 0, runAsGroup: 0}}]
`

// testMistakes asks for them. Each answer is one line, with what to do.
func testMistakes(t *testing.T, c *cluster) {
	c.apply(t, troubled)
	within(t, time.Minute, "they are in trouble", func() bool {
		crashing, err := c.client.CoreV1().Pods("troubled").Get(t.Context(), "crashing", meta.GetOptions{})
		require.NoError(t, err)
		s := crashing.Status.ContainerStatuses
		return len(s) == 1 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	c.run(t, "kubectl -n troubled wait pod/idle pod/root --for=condition=Ready --timeout=1m")
	var lines []string
	ask := func(args, want string) {
		stdout, stderr, code := c.plugin(t, "admin", args)
		require.NotZero(t, code, args)
		require.Empty(t, stdout, args)
		require.Contains(t, stderr, want, args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		lines = append(lines, "$ kubectl tcpdiag "+args, stderr[:len(stderr)-1])
	}
	for _, test := range []struct{ args, want string }{
		{"orders --context prod", `context "prod" does not exist: kubectl config get-contexts`},
		{"orders -n shop", "no pod is called orders in namespace shop: kubectl get pods -A lists those of all; deploy/orders is a workload"},
		{"deploy/order -n shop", "deploy/order is not in namespace shop"},
		{"-n shpo", "no pod is in namespace shpo"},
		{"-l app=order -n shop", "no pod with labels app=order is in namespace shop"},
		{"-l 'app in' -n shop", "unable to parse"},
		{"-A", "no sidecar and no node agent watches any of the"},
		{"deploy/asleep -n troubled", "it is scaled to 0 (kubectl scale -n troubled deploy/asleep --replicas=1)"},
		{"deploy homeless -n troubled", "it is Pending, on no node yet (Unschedulable: 0/1 nodes are available"},
		{"windows -n troubled", "it has failed (PodOSNotSupported"},
		{"initializing -n troubled", "it is Pending: init container wait runs, and has not ended"},
		{"imageless -n troubled", "it is Pending: container app waits (ErrImageNeverPull"},
		{"crashing -n troubled", "with exit code 2"},
		{"idle -n troubled -c web", `the pod has no container "web"; -c takes one of app, proxy`},
		{"idle -n troubled --image nowhere.invalid/tcpdiag:1 --timeout 40s", "--image takes one that " + nodeName + " can pull"},
		{"idle -n troubled", "has found no JVM that listens in container app: -c takes one of app, proxy"},
		{"idle -n troubled --via node", "no agent runs on " + nodeName + " in namespace tcpdiag"},
		{"idle -n troubled --via sidecar", "the pod has no running container called tcpdiag"},
	} {
		ask(test.args, test.want)
	}
	c.run(t, "kubectl label namespace troubled "+enforce+"=restricted")
	ask("root -n troubled", "--via node adds nothing to it")
	t.Logf("RESULT mistakes:\n%s", strings.Join(lines, "\n"))
	for _, complete := range []struct{ args, want string }{{"__complete -n shop deploy/", "deploy/orders"}, {"__complete -n troubled id", "idle"}} {
		cmd := c.command(t.Context(), "kubectl-tcpdiag "+complete.args)
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Contains(t, string(out), complete.want)
	}
	c.run(t, "kubectl delete namespace troubled --timeout=90s")
}
