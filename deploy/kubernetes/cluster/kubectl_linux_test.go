package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKubectl overloads a Tomcat in a distroless pod under restricted, and asks why, with
// kubectl tcpdiag in each of its three ways, as users who may no more than each way's Role.
func TestKubectl(t *testing.T) { onNode(t, again, testKubectl) }

const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders, namespace: shop}
spec:
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      containers:
        - name: app
          image: orders:distroless
          imagePullPolicy: Never
          ports: [{containerPort: 8080}]
          startupProbe: {tcpSocket: {port: 8080}, periodSeconds: 1, timeoutSeconds: 30, failureThreshold: 300} # and no client later
          securityContext:
            runAsNonRoot: true
            runAsUser: 1001
            allowPrivilegeEscalation: false
            capabilities: {drop: [ALL]}
            seccompProfile: {type: RuntimeDefault}
          volumeMounts:
            - {name: work, mountPath: /usr/local/tomcat/work}
            - {name: work, mountPath: /usr/local/tomcat/logs}
            - {name: work, mountPath: /tmp}
      volumes: [{name: work, emptyDir: {}}]
`

func testKubectl(t *testing.T, cgroup string) {
	c := startCluster(t)
	c.startNode(t, cgroup, append(writeOwnImages(t, c), writeDistroless(t, c)))
	manifest := filepath.Join(c.dir, "shop.yaml")
	require.NoError(t, os.WriteFile(manifest, []byte(shop), 0o600))
	c.run(t, "kubectl apply --validate=strict -f "+manifest)
	c.run(t, "kubectl -n shop rollout status deployment/orders --timeout=3m")
	pod := c.pods(t, "shop", "app=orders", 1)[0]
	_, err := c.sh(t, "kubectl -n shop exec "+pod.Name+" -- sh -c true")
	require.Error(t, err, "there is no shell")
	require.Nil(t, pod.Spec.SecurityContext.RunAsGroup, "the image's: nobody but the container knows it")
	t.Run("mistakes", func(t *testing.T) { testMistakes(t, c) })
	calm := c.overload(t, pod)

	// Nothing is there that could answer, and this user may not add anything.
	t.Run("denied", func(t *testing.T) {
		c.user(t, "nobody")
		_, stderr, code := c.plugin(t, "nobody", "deploy/orders -n shop")
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "you may not get deployments.apps in namespace shop")
		require.Contains(t, stderr, "kind: Role")
		c.user(t, "reader", "deploy/kubernetes/plugin/sidecar.yaml", "shop")
		_, stderr, code = c.plugin(t, "reader", "deploy/orders -n shop --via ephemeral")
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "you may not patch pods/ephemeralcontainers in namespace shop")
		require.Contains(t, stderr, "name: tcpdiag-ephemeral")
	})
	t.Run("ephemeral", func(t *testing.T) {
		c.user(t, "oncall", "deploy/kubernetes/plugin/ephemeral.yaml", "shop")
		for _, what := range []string{"first", "again"} {
			c.right(t, what, "oncall", askOrders+" --via ephemeral", "clients (it lacks CAP_NET_RAW)")
		}
		now, err := c.client.CoreV1().Pods("shop").Get(t.Context(), pod.Name, meta.GetOptions{})
		require.NoError(t, err)
		require.Len(t, now.Spec.EphemeralContainers, 2, "one that read the ids, one that is asked, no third")
		i := slices.IndexFunc(now.Spec.EphemeralContainers, func(e core.EphemeralContainer) bool { return e.Name == "tcpdiag-2" })
		require.GreaterOrEqual(t, i, 0)
		ids := now.Spec.EphemeralContainers[i].SecurityContext
		require.Equal(t, [2]int64{1001, 0}, [2]int64{*ids.RunAsUser, *ids.RunAsGroup}, "runAsUser alone leaves the gid to the image")
		require.Zero(t, now.Status.ContainerStatuses[0].RestartCount)
	})
	t.Run("thread dump", func(t *testing.T) {
		_, stderr, code := c.plugin(t, "oncall", "deploy/orders -n shop --via ephemeral --thread-dump")
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "pods/exec")
		require.Contains(t, stderr, "name: tcpdiag-thread-dump")
		c.user(t, "dumper", "deploy/kubernetes/plugin/ephemeral.yaml", "shop", "deploy/kubernetes/plugin/thread-dump.yaml", "shop")
		stdout, stderr, code := c.plugin(t, "dumper", "deploy/orders -n shop --thread-dump -v")
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, "slow_jsp")
		require.NotContains(t, stdout, "names of the pods", "in its own pod it needs no folder of the kubelet's")
	})
	t.Run("node", func(t *testing.T) {
		c.run(t, "kubectl apply -k deploy/kubernetes/daemonset")
		c.run(t, "kubectl --namespace tcpdiag rollout status daemonset/tcpdiag --timeout=2m")
		c.user(t, "platform", "deploy/kubernetes/plugin/node.yaml", "shop")
		_, stderr, code := c.plugin(t, "platform", "deploy/orders -n shop --via node")
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "you may not list pods in namespace tcpdiag")
		require.Contains(t, stderr, "name: tcpdiag-agents")
		c.user(t, "platform", "deploy/kubernetes/plugin/agents.yaml", "tcpdiag")
		within(t, time.Minute, "the agent has seen the pod", func() bool {
			_, _, code := c.plugin(t, "platform", "deploy/orders -n shop --via node")
			return code == 0
		})
		c.right(t, "node", "platform", askOrders, "by the agent of "+nodeName)
	})
	t.Run("incidents", func(t *testing.T) {
		within(t, time.Minute, "an incident of the node agent", func() bool {
			stdout, _, _ := c.plugin(t, "platform", "incidents -n shop")
			return strings.Contains(stdout, "8080")
		})
	})
	t.Run("alert", func(t *testing.T) { testAlert(t, c, pod) })
	calm()
	pod = c.addSidecar(t)
	t.Run("load test", func(t *testing.T) { testLoadTest(t, c, pod) })
	t.Run("sidecar", func(t *testing.T) { testAskedSidecar(t, c, pod) })
}

// addSidecar gives the Deployment the sidecar, whose pod is a new one.
func (c *cluster) addSidecar(t *testing.T) (pod core.Pod) {
	t.Helper()
	patch := `{"spec":{"template":{"spec":{"shareProcessNamespace":true,"securityContext":{"runAsUser":1001,"runAsGroup":1001,"runAsNonRoot":true},
"initContainers":[{"name":"tcpdiag","image":"tcpdiag/tcpdiag:0.1.0","imagePullPolicy":"IfNotPresent","restartPolicy":"Always","args":["agent"],"ports":[{"name":"tcpdiag","containerPort":10889}],
"securityContext":{"runAsNonRoot":true,"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"seccompProfile":{"type":"RuntimeDefault"}}}]}}}}`
	c.run(t, "kubectl -n shop scale deployment/orders --replicas=0 && kubectl -n shop patch deployment orders -p '"+strings.ReplaceAll(patch, "\n", "")+"' && kubectl -n shop scale deployment/orders --replicas=1")
	c.run(t, "kubectl -n shop rollout status deployment/orders --timeout=3m")
	within(t, time.Minute, "only the new pod", func() bool {
		list, err := c.client.CoreV1().Pods("shop").List(t.Context(), meta.ListOptions{LabelSelector: "app=orders"})
		if err != nil || len(list.Items) != 1 || list.Items[0].Status.Phase != core.PodRunning {
			return false
		}
		pod = list.Items[0]
		return true
	})
	return pod
}

func testAskedSidecar(t *testing.T, c *cluster, pod core.Pod) {
	c.overload(t, pod)
	// A JVM that has just started compiles: on a busy machine its threads wait for a CPU first.
	within(t, time.Minute, "the server has settled", func() bool {
		stdout, _, _ := c.plugin(t, "reader", "deploy/orders -n shop")
		return strings.Contains(stdout, "20 of 20 connections")
	})
	c.right(t, "sidecar", "reader", askOrders, "by the sidecar")
}

// overload has sixty clients ask for a page that takes ten seconds, again and again, until
// the queue is full; to call the result ends it.
func (c *cluster) overload(t *testing.T, pod core.Pod) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	end = func() { stop(); clients.Wait() }
	t.Cleanup(end)
	url := "http://" + pod.Status.PodIP + ":8080/slow.jsp?ms=10000"
	for range 60 {
		clients.Go(func() {
			client := &http.Client{Timeout: 60 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
				if err != nil {
					return
				}
				if resp, err := client.Do(req); err == nil {
					_ = resp.Body.Close()
				} else {
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	time.Sleep(3 * time.Second) // the first page is compiled
	return end
}

// user makes one with a certificate and exactly these Roles: files, each with its namespace.
func (c *cluster) user(t *testing.T, name string, roles ...string) {
	t.Helper()
	c.kubeconfig(t, c.url, name)
	for i := 0; i < len(roles); i += 2 {
		role := "tcpdiag-" + strings.TrimSuffix(filepath.Base(roles[i]), ".yaml")
		c.run(t, fmt.Sprintf("kubectl -n %[1]s apply -f %[2]s\nkubectl -n %[1]s create rolebinding %[3]s-%[4]s --role=%[3]s --user=%[4]s", roles[i+1], roles[i], role, name))
	}
}

// plugin runs kubectl tcpdiag as a user, as kubectl finds it.
func (c *cluster) plugin(t *testing.T, user, args string) (stdout, stderr string, code int) {
	t.Helper()
	return c.pluginThen(t, user, args, "")
}

// pluginThen has the command of kubectl tcpdiag run, too.
func (c *cluster) pluginThen(t *testing.T, user, args, command string) (stdout, stderr string, code int) {
	t.Helper()
	line := "kubectl tcpdiag " + args + " --kubeconfig " + c.file(user+".kubeconfig")
	if command != "" {
		line += " -- " + command
	}
	cmd := c.command(t.Context(), line)
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case cmd.ProcessState != nil:
		code = cmd.ProcessState.ExitCode()
	default:
		require.NoError(t, err, exit)
	}
	t.Logf("$ kubectl tcpdiag %s   (as %s)\n%s%s", args, user, out.String(), complaints.String())
	return out.String(), complaints.String(), code
}

// right asks in text and in JSON: the answer names the limits, and says which way it came.
func (c *cluster) right(t *testing.T, what, user, args, about string) {
	t.Helper()
	began := time.Now()
	stdout, stderr, code := c.plugin(t, user, args)
	took := time.Since(began)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "20 of 20 connections")
	require.Contains(t, stderr, about)
	t.Logf("RESULT %s: verdict after %.1f s; %s", what, took.Seconds(), strings.TrimSpace(stderr))
	stdout, stderr, code = c.plugin(t, user, args+" -o json --exit-status")
	require.Contains(t, []int{11, 12}, code, stderr)
	var said struct {
		Listeners []struct {
			Port    int
			Verdict struct {
				Status, Cause string
				Chain         []string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &said))
	require.Len(t, said.Listeners, 1)
	require.Equal(t, "max_connections", said.Listeners[0].Verdict.Cause)
	require.Contains(t, said.Listeners[0].Verdict.Chain, "max_threads")
}
