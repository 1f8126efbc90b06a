package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inside is set within the namespaces: the name of the pods' cgroup.
const inside = "TCPDIAG_CLUSTER_INSIDE"

// TestRunning has a real node: a kubelet and containerd, which start the pods.
// All of it is in network, mount and pid namespaces, and ends with the first
// process of those.
func TestRunning(t *testing.T) {
	onNode(t, func(t *testing.T) {
		operatorFolder(t) // while there is a network
		again(t)
	}, testRunning)
}

// onNode has a process of its own run a test, in which test is called with the name of the pods' cgroup.
func onNode(t *testing.T, outside func(*testing.T), test func(t *testing.T, cgroup string)) {
	t.Helper()
	switch {
	case os.Getenv(enable) == "":
		t.Skip(whySkipped)
	case os.Geteuid() != 0:
		require.NotEqual(t, "true", os.Getenv("CI"), "a kubelet needs root")
		t.Skip("a kubelet needs root")
	case os.Getenv(inside) == "":
		outside(t)
	default:
		isolate(t)
		test(t, os.Getenv(inside))
	}
}

// again runs this test in the namespaces.
func again(t *testing.T) {
	cgroup := fmt.Sprintf("tcpdiag-cluster-%d", os.Getpid())
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "14m")
	cmd.Env = append(os.Environ(), inside+"="+cgroup)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = namespaces()
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	removeCgroup(t, cgroup)
	require.NoError(t, err)
}

func testRunning(t *testing.T, cgroup string) {
	c := startCluster(t)
	c.startNode(t, cgroup, writeImages(t, c))
	c.addOperator(t)
	main := readBlocks(t, "deploy/kubernetes/README.md", "sh")
	kubernetes := readBlocks(t, "deploy/kubernetes/daemonset/README.md", "sh")
	c.run(t, main.block(t, sidecarBlock))
	c.run(t, "kubectl --namespace "+example+" rollout status deployment/tomcat --timeout=2m")
	pods := c.pods(t, example, hasSidecar, 2)
	t.Run("sidecar", func(t *testing.T) {
		for _, pod := range pods {
			var l listener
			within(t, time.Minute, "the limits are found out", func() bool {
				l = c.said(t, pod)
				return l.Connector != nil
			})
			requireSeen(t, l)
			require.NotNil(t, l.Pod, "by the downward API")
			require.Equal(t, []string{pod.Namespace, pod.Name, "tomcat", string(pod.UID)}, []string{l.Pod.Namespace, l.Pod.Name, l.Pod.Container, l.Pod.UID})
		}
	})
	t.Run("agent", func(t *testing.T) { testAgentRuns(t, c, kubernetes, pods) })
	t.Run("helm test", func(t *testing.T) { testHelmTest(t, c) })
	t.Run("shutdown", func(t *testing.T) { testShutdown(t, c, pods[0]) })
	t.Run("apart", func(t *testing.T) {
		c.run(t, "kubectl apply -k deploy/kubernetes/sidecar/apart")
		c.run(t, "kubectl --namespace "+example+" rollout status deployment/tomcat --timeout=2m")
		for _, pod := range c.pods(t, example, hasSidecar, 2) {
			l := c.said(t, pod)
			require.Equal(t, "ok", l.Verdict.Status)
			require.Nil(t, l.Process)
			require.Equal(t, 8192, l.Connector.MaxConnections.Value, "given by hand")
		}
	})
}

// The node's one agent finds both Tomcats and knows whose they are.
func testAgentRuns(t *testing.T, c *cluster, kubernetes *readme, pods []core.Pod) {
	forward := c.command(t.Context(), kubernetes.block(t, plainBlock)) // ends in a port-forward
	forward.Stdout, forward.Stderr = os.Stderr, os.Stderr
	forward.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, forward.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-forward.Process.Pid, syscall.SIGTERM)
		_ = forward.Wait()
	})
	want := map[string]string{} // by the pod's uid, the Tomcat's container
	for _, pod := range pods {
		want[string(pod.UID)] = strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
	}
	var got map[string]string
	var said snapshot
	within(t, 2*time.Minute, "an answer with both pods", func() bool {
		out, err := c.command(t.Context(), kubernetes.block(t, "curl")).Output()
		if err != nil || json.Unmarshal(out, &said) != nil {
			return false
		}
		got = map[string]string{}
		for _, l := range said.Listeners {
			if l.Port == 8080 && l.Process != nil {
				got[l.Process.PodUID] = l.Process.Container
			}
		}
		return len(got) == len(want)
	})
	require.Equal(t, want, got)
	names := map[string]string{} // by uid
	for _, pod := range pods {
		names[string(pod.UID)] = pod.Namespace + "/" + pod.Name + " tomcat"
	}
	for _, l := range said.Listeners {
		if l.Port == 8080 {
			requireSeen(t, l)
			require.NotNil(t, l.Pod, "by the kubelet's folders")
			require.Equal(t, names[l.Process.PodUID], l.Pod.Namespace+"/"+l.Pod.Name+" "+l.Pod.Container)
			require.Equal(t, l.Process.PodUID, l.Pod.UID)
		}
	}
	c.run(t, "kubectl delete -k deploy/kubernetes/daemonset")
}

// helm test asks an agent that runs, from another pod, and leaves nothing; where none can be asked, it
// says so.
func testHelmTest(t *testing.T, c *cluster) {
	c.serveDNS(t)
	c.run(t, "kubectl create namespace agents\nkubectl label namespace agents "+enforce+"=privileged")
	c.run(t, "helm install tcpdiag deploy/helm/tcpdiag --namespace agents --wait --timeout 2m")
	out := c.run(t, "helm test tcpdiag --namespace agents --logs --timeout 2m")
	require.Contains(t, out, "Phase:          Succeeded")
	require.Empty(t, strings.TrimSpace(string(c.output(t, "kubectl --namespace agents get pods,services --output name | grep -- -test || true"))))
	c.run(t, "kubectl --namespace agents patch daemonset tcpdiag --patch '{\"spec\": {\"template\": {\"spec\": {\"nodeSelector\": {\"nowhere\": \"true\"}}}}}'")
	within(t, time.Minute, "the agent is gone", func() bool {
		list, err := c.client.CoreV1().Pods("agents").List(t.Context(), meta.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	out, err := c.sh(t, "helm test tcpdiag --namespace agents --timeout 10s")
	require.Error(t, err, out)
	c.run(t, "helm uninstall tcpdiag --namespace agents")
	c.remove(t, "agents")
}

// When a pod is deleted, its tcpdiag answers for longer than between two scrapes
// after Tomcat has ended.
func testShutdown(t *testing.T, c *cluster, pod core.Pod) {
	c.run(t, "kubectl --namespace "+pod.Namespace+" delete pod "+pod.Name+" --wait=false")
	var first, last time.Time // that it said that nobody listens
	within(t, time.Minute, "the pod is gone", func() bool {
		var said snapshot
		out, err := c.command(t.Context(), "kubectl get --raw "+asked(pod)).Output()
		if err == nil && json.Unmarshal(out, &said) == nil && len(said.Listeners) == 1 && said.Listeners[0].Verdict.Status == "down" {
			last = time.Now()
			if first.IsZero() {
				first = last
			}
		}
		_, err = c.client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, meta.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	require.Greater(t, last.Sub(first), 15*time.Second)
}

// asked is where the API server hands out the snapshot of a pod's tcpdiag.
func asked(pod core.Pod) string {
	return "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name + ":10889/proxy/api/v1/snapshot"
}

// snapshot is what of /api/v1/snapshot is read here.
type snapshot struct{ Listeners []listener }

type listener struct {
	Port    int
	Pod     *struct{ Namespace, Name, Container, UID string }
	Process *struct {
		Comm, Container string
		PodUID          string `json:"pod_uid"`
	}
	Connector *struct {
		Server, Version string
		MaxConnections  struct {
			Value  int
			Source string
		} `json:"max_connections"`
	}
	AcceptQueue struct{ Limit int } `json:"accept_queue"`
	Verdict     struct{ Status, Cause, Summary string }
}

// said asks a pod's tcpdiag, through the API server, for its port 8080.
func (c *cluster) said(t *testing.T, pod core.Pod) listener {
	t.Helper()
	var s snapshot
	c.into(t, &s, "kubectl get --raw "+asked(pod))
	require.Len(t, s.Listeners, 1)
	require.Equal(t, 8080, s.Listeners[0].Port)
	return s.Listeners[0]
}

// requireSeen holds that tcpdiag knows the Tomcat and its limits.
func requireSeen(t *testing.T, l listener) {
	t.Helper()
	require.Equal(t, "ok", l.Verdict.Status, "%s: %s", l.Verdict.Cause, l.Verdict.Summary)
	require.NotNil(t, l.Process)
	require.Equal(t, "java", l.Process.Comm)
	require.Equal(t, "10.1.59", l.Connector.Version)
	require.Equal(t, 8192, l.Connector.MaxConnections.Value)
	require.Equal(t, 100, l.AcceptQueue.Limit)
}
