package cluster

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// enable is the environment variable with the folder of the programs.
const enable = "TCPDIAG_CLUSTER"

const nodeName = "node-1"

// cluster is a control plane.
type cluster struct {
	*authority
	programs string
	url      string
	env      []string
	client   *kubernetes.Clientset
}

// startCluster has what a cluster of kubeadm's has, where it matters here: RBAC,
// the default admission with Pod Security in it, all controllers, the scheduler.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	programs, err := filepath.Abs(os.Getenv(enable))
	require.NoError(t, err)
	dir := t.TempDir()
	c := &cluster{authority: newAuthority(t, dir), programs: programs}
	c.start(t)
	// An empty home: no configuration but ours, and caches that go with it.
	c.env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+dir,
		"XDG_CACHE_HOME=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "KUBECONFIG="+c.file("admin.kubeconfig"))
	config, err := clientcmd.BuildConfigFromFlags("", c.file("admin.kubeconfig"))
	require.NoError(t, err)
	config.QPS, config.Burst = 100, 100
	c.client, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	within(t, 2*time.Minute, "the API server is ready", func() bool {
		_, err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err == nil
	})
	c.startControllers(t)
	return c
}

func (c *cluster) start(t *testing.T) {
	t.Helper()
	c.server(t, "kube-apiserver")
	c.server(t, "service-account") // its key signs the tokens
	etcd, port := "http://127.0.0.1:"+freePort(t), freePort(t)
	c.url = "https://127.0.0.1:" + port
	c.kubeconfig(t, c.url, "admin", "system:masters")

	start(t, c.dir, c.program("etcd"), "--data-dir=etcd", "--log-level=warn",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls=http://127.0.0.1:"+freePort(t))
	start(t, c.dir, c.program("kube-apiserver"), "--etcd-servers="+etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+port, "--endpoint-reconciler-type=none",
		"--tls-cert-file=kube-apiserver.crt", "--tls-private-key-file=kube-apiserver.key",
		"--client-ca-file=ca.crt", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=service-account.crt",
		"--service-account-signing-key-file=service-account.key", "--service-cluster-ip-range=10.96.0.0/16",
		"--kubelet-client-certificate=admin.crt", "--kubelet-client-key=admin.key", "--kubelet-preferred-address-types=InternalIP")
}

// startControllers comes after the API server is ready: a controller manager gives it ten seconds,
// and nobody here would start it again.
func (c *cluster) startControllers(t *testing.T) {
	t.Helper()
	start(t, c.dir, c.program("kube-controller-manager"),
		"--kubeconfig="+c.kubeconfig(t, c.url, "system:kube-controller-manager"),
		"--use-service-account-credentials", "--service-account-private-key-file=service-account.key",
		"--root-ca-file=ca.crt", "--leader-elect=false", "--secure-port=0",
		"--node-monitor-grace-period=1h") // no kubelet says that the node lives
	start(t, c.dir, c.program("kube-scheduler"),
		"--kubeconfig="+c.kubeconfig(t, c.url, "system:kube-scheduler"), "--leader-elect=false", "--secure-port=0")
}

func (c *cluster) program(name string) string { return filepath.Join(c.programs, name) }

// addNode registers a node as a kubelet does, which does not run: pods are made,
// judged and scheduled, and never start. One thing that a kubelet does is done here:
// to let go of pods that are deleted.
func (c *cluster) addNode(t *testing.T) {
	t.Helper()
	node := &core.Node{ObjectMeta: meta.ObjectMeta{Name: nodeName, Labels: map[string]string{core.LabelOSStable: "linux"}}}
	node, err := c.client.CoreV1().Nodes().Create(t.Context(), node, meta.CreateOptions{})
	require.NoError(t, err)
	node.Status.Capacity = core.ResourceList{
		core.ResourceCPU: resource.MustParse("4"), core.ResourceMemory: resource.MustParse("8Gi"),
		core.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Conditions = []core.NodeCondition{{
		Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: meta.Now(), LastTransitionTime: meta.Now(),
	}}
	_, err = c.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, meta.UpdateOptions{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go c.letGo(ctx)
}

// letGo deletes for good the pods of the node that are to end. Nothing runs in
// them, so there is nothing to wait for.
func (c *cluster) letGo(ctx context.Context) {
	for ctx.Err() == nil {
		pods, err := c.client.CoreV1().Pods("").Watch(ctx, meta.ListOptions{FieldSelector: "spec.nodeName=" + nodeName})
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*core.Pod); ok && pod.DeletionTimestamp != nil {
				_ = c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, meta.DeleteOptions{
					GracePeriodSeconds: new(int64(0)), Preconditions: meta.NewUIDPreconditions(string(pod.UID)),
				})
			}
		}
	}
}

// command runs a block as a user would who pastes it: in the repository's root.
func (c *cluster) command(ctx context.Context, block string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", block)
	cmd.Dir, cmd.Env = root, c.env
	return cmd
}

// sh runs a block up to the first command that fails. What it printed,
// complaints included.
func (c *cluster) sh(t *testing.T, block string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := c.command(ctx, block).CombinedOutput()
	t.Logf("$ %s\n%s", block, out)
	return string(out), err
}

// run is sh for what must succeed.
func (c *cluster) run(t *testing.T, block string) string {
	t.Helper()
	out, err := c.sh(t, block)
	require.NoError(t, err, out)
	return out
}

// output is what a command that must succeed prints, without its complaints.
func (c *cluster) output(t *testing.T, command string) []byte {
	t.Helper()
	out, err := c.command(t.Context(), command).Output()
	require.NoError(t, err, command)
	return out
}

// into decodes what a command prints as JSON.
func (c *cluster) into(t *testing.T, v any, command string) {
	t.Helper()
	require.NoError(t, json.Unmarshal(c.output(t, command), v))
}

// pods are those that a selector finds, once there are that many of them and the
// scheduler has given each to the node.
func (c *cluster) pods(t *testing.T, namespace, selector string, n int) []core.Pod {
	t.Helper()
	var pods []core.Pod
	within(t, time.Minute, "scheduled pods of "+selector, func() bool {
		list, err := c.client.CoreV1().Pods(namespace).List(t.Context(), meta.ListOptions{LabelSelector: selector})
		if err != nil || len(list.Items) != n {
			return false
		}
		pods = list.Items
		for _, p := range pods {
			if p.Spec.NodeName != nodeName || p.DeletionTimestamp != nil {
				return false
			}
		}
		return true
	})
	return pods
}

// refusal waits for the event that says why a controller got no pod.
func (c *cluster) refusal(t *testing.T, namespace string) string {
	t.Helper()
	var message string
	within(t, 30*time.Second, "a pod is refused", func() bool {
		events, err := c.client.CoreV1().Events(namespace).List(t.Context(), meta.ListOptions{FieldSelector: "reason=FailedCreate"})
		if err != nil || len(events.Items) == 0 {
			return false
		}
		message = events.Items[len(events.Items)-1].Message
		return true
	})
	return message
}

// remove deletes namespaces and waits for their end.
func (c *cluster) remove(t *testing.T, namespaces ...string) {
	t.Helper()
	for _, name := range namespaces {
		c.run(t, "kubectl delete namespace "+name+" --timeout=90s")
	}
}

// within waits for something that is bound to come.
func within(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			require.FailNow(t, "not within "+limit.String(), what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
