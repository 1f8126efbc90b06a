package cluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscaling "k8s.io/api/autoscaling/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPods has fifty pods of twelve workloads on a real node, whose names its agent says: at their
// start, while they are replaced as fast as the kubelet can, and beside pods that lie.
func TestPods(t *testing.T) { onNode(t, again, testPods) }

const (
	// soon is how long after its start a pod's name is to be there.
	soon = 2 * time.Second
	// atLast is after how long it must be, on a machine that has more to do.
	atLast = 10 * time.Second
	many   = 50
)

func testPods(t *testing.T, cgroup string) {
	c := startCluster(t)
	c.startNode(t, cgroup, append(writeOwnImages(t, c), writeStub(t, c)))
	c.run(t, "kubectl apply -k deploy/kubernetes/daemonset")
	c.run(t, "kubectl --namespace tcpdiag rollout status daemonset/tcpdiag --timeout=2m")
	agent := c.pods(t, agents, anAgent, 1)[0]
	url := "http://" + agent.Status.PodIP + ":10889"

	t.Run("liars", func(t *testing.T) { testLiars(t, c, url) })
	t.Run("fifty", func(t *testing.T) { testFifty(t, c, url) })
	now, err := c.client.CoreV1().Pods(agents).Get(t.Context(), agent.Name, meta.GetOptions{})
	require.NoError(t, err)
	require.Zero(t, now.Status.ContainerStatuses[0].RestartCount, "the agent has lived within its limits")
}

// workload has as many pods as are asked for.
type workload struct {
	kind, namespace, name string
	most                  int32
}

// scale has it have that many.
func (w workload) scale(t *testing.T, c *cluster, replicas int32) {
	t.Helper()
	to := &autoscaling.Scale{ObjectMeta: meta.ObjectMeta{Namespace: w.namespace, Name: w.name}, Spec: autoscaling.ScaleSpec{Replicas: replicas}}
	var err error
	if w.kind == "Deployment" {
		_, err = c.client.AppsV1().Deployments(w.namespace).UpdateScale(t.Context(), w.name, to, meta.UpdateOptions{})
	} else {
		_, err = c.client.AppsV1().StatefulSets(w.namespace).UpdateScale(t.Context(), w.name, to, meta.UpdateOptions{})
	}
	require.NoError(t, err)
}

// workloads are twelve in five namespaces, that have fifty pods in all: two have one, the others none yet.
func workloads() (manifest string, scaled []workload) {
	var b strings.Builder
	var namespaces []string
	for i := range 5 {
		namespaces = append(namespaces, fmt.Sprintf("team-%d", i))
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-%d}\n---\n", i)
	}
	add := func(kind, group, spec string, i int) {
		name := fmt.Sprintf("%s-%d", strings.ToLower(kind), i)
		selector := fmt.Sprintf("selector: {matchLabels: {app: %s}}\n  ", name)
		if kind == "Job" {
			selector = ""
		}
		fmt.Fprintf(&b, `apiVersion: %s
kind: %s
metadata: {name: %s, namespace: %s}
spec:
  %s%stemplate:
    metadata: {labels: {app: %s, made: many}}
    spec: %s
---
`, group, kind, name, namespaces[i%len(namespaces)], selector, spec, name, stubSpec("app", kind == "Job"))
	}
	for i := range 6 {
		add("Deployment", "apps/v1", "replicas: 0\n  ", i)
		scaled = append(scaled, workload{"Deployment", namespaces[i%len(namespaces)], fmt.Sprintf("deployment-%d", i), 6})
	}
	for i := range 4 {
		add("StatefulSet", "apps/v1", "replicas: 0\n  podManagementPolicy: Parallel\n  serviceName: none\n  ", i)
		scaled = append(scaled, workload{"StatefulSet", namespaces[i%len(namespaces)], fmt.Sprintf("statefulset-%d", i), 3})
	}
	add("DaemonSet", "apps/v1", "", 0)
	add("Job", "batch/v1", "backoffLimit: 1000\n  ", 0)
	return b.String(), scaled
}

// stubSpec is a pod's, on one line.
func stubSpec(container string, once bool) string {
	restart := ""
	if once {
		restart = "restartPolicy: Never, "
	}
	return fmt.Sprintf("{%sautomountServiceAccountToken: false, enableServiceLinks: false, terminationGracePeriodSeconds: 1, containers: [%s]}", restart, stubContainer(container, ""))
}

func stubContainer(name, more string) string {
	return fmt.Sprintf("{name: %q, image: 'stub:test', imagePullPolicy: Never, env: %s%s}", name, truly(name), more)
}

func (c *cluster) apply(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))
	c.run(t, "kubectl apply --validate=strict -f "+file+" | tail -n 3")
}

func testFifty(t *testing.T, c *cluster, url string) {
	manifest, scaled := workloads()
	all := func() bool {
		started, _ := c.ofMany(t)
		return len(started) == many
	}
	f := follow(t, url)
	c.apply(t, manifest)
	for replicas := int32(1); replicas <= 6; replicas++ {
		for _, w := range scaled {
			if replicas <= w.most {
				w.scale(t, c, replicas)
				time.Sleep(time.Second)
			}
		}
	}
	within(t, time.Minute, "all run", all)
	time.Sleep(soon)
	f.report(t, "fifty pods, one a second")
	require.Empty(t, f.unnamedAfter(soon))
	require.Empty(t, f.mistakes())
	require.Equal(t, many, f.namedNow())

	for _, w := range scaled {
		w.scale(t, c, 0)
	}
	within(t, time.Minute, "two are left", func() bool { _, n := c.ofMany(t); return n == many-48 })
	f.restart()
	for _, w := range scaled {
		w.scale(t, c, w.most)
	}
	within(t, 4*time.Minute, "all run", all)
	time.Sleep(atLast)
	f.report(t, "forty-eight pods at once")
	require.Empty(t, f.mistakes())
	require.Equal(t, many-2, f.namedNow())
	calm := f.restart()

	lasts := 5 * time.Minute
	if testing.Short() {
		lasts = 40 * time.Second
	}
	began, replaced := time.Now(), 0
	for time.Since(began) < lasts {
		replaced += c.replace(t)
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("RESULT %d pods replaced in %v, %.1f a second", replaced, lasts, float64(replaced)/lasts.Seconds())
	within(t, 2*time.Minute, "all run again", all)
	time.Sleep(atLast)
	f.report(t, "replaced")
	require.Empty(t, f.mistakes())
	require.Greater(t, replaced, many, "each once or more")
	f.mu.Lock()
	defer f.mu.Unlock()
	t.Logf("RESULT series: %d before, at most %d while pods were replaced; listeners at most %d", calm, f.series, f.listed)
	// Counters of a hundred addresses that are closed stay (promexport.MaxRetained), some forty series of each.
	require.Less(t, f.series, calm+100*45)
	require.Less(t, f.listed, many*3/2)
}

// ofMany are the pods of the workloads, those that run the oldest first, and how many there are.
func (c *cluster) ofMany(t *testing.T) (running []core.Pod, all int) {
	t.Helper()
	list, err := c.client.CoreV1().Pods("").List(t.Context(), meta.ListOptions{LabelSelector: "made=many"})
	require.NoError(t, err)
	for _, p := range list.Items {
		if p.Status.Phase == core.PodRunning && p.DeletionTimestamp == nil {
			running = append(running, p)
		}
	}
	slices.SortFunc(running, func(a, b core.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return running, len(list.Items)
}

// replace deletes as many pods as the kubelet has room for: ten at a time are under way. How many.
func (c *cluster) replace(t *testing.T) (n int) {
	t.Helper()
	running, _ := c.ofMany(t)
	for _, p := range running {
		if kind := p.OwnerReferences[0].Kind; len(running)-n <= many-10 || kind == "Job" || kind == "DaemonSet" {
			continue
		}
		err := c.client.CoreV1().Pods(p.Namespace).Delete(t.Context(), p.Name, meta.DeleteOptions{})
		require.NoError(t, err)
		n++
	}
	return n
}

// report holds that every container that lived long enough was named, and says how soon.
func (f *follower) report(t *testing.T, what string) {
	t.Helper()
	require.Empty(t, f.unnamed(atLast), "containers without a name")
	late := len(f.unnamedAfter(soon))
	f.mu.Lock()
	defer f.mu.Unlock()
	took := slices.Collect(maps.Values(f.named))
	slices.Sort(took)
	require.NotEmpty(t, took)
	at := func(part float64) float64 { return took[int(part*float64(len(took)-1))].Seconds() }
	t.Logf("RESULT %s: %d containers named, median %.1f s after the start of the process, 95 %% %.1f s, the last %.1f s; %d after more than %v; %d wrong; asked %d times",
		what, len(took), at(0.5), at(0.95), at(1), late, soon, len(f.wrong), f.asked)
}

// testLiars has pods that say that they are others, and pods whose names are hard to read.
func testLiars(t *testing.T, c *cluster, url string) {
	long := strings.Repeat("n", 63)
	pod := strings.Repeat("p", 255-len(long)-36-2) // with the uid, as long as a folder's name can be
	var b strings.Builder
	for _, ns := range []string{"shop", "shop-orders", "app", long} {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", ns)
	}
	n := 0
	add := func(namespace, name string, containers ...string) {
		n += len(containers)
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata: {name: %q, namespace: %q}\nspec: {automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, containers: [%s]}\n---\n",
			name, namespace, strings.Join(containers, ", "))
	}
	plain := func(name string) string { return stubContainer(name, "") }
	add("shop", "orders", plain("app"))
	add("shop-orders", "app", plain("app"))
	add("app", "shop", plain("orders"))
	add("shop", "orders.app", plain("app"))
	add("shop", strings.Repeat("0", 64), plain("app"))
	add("shop", "0b5165d5-8a3a-4d5c-9f0e-1d2c3b4a5968", plain("orders"))
	add("shop", "orders-app", plain(strings.Repeat("a", 63)), strings.Replace(stubContainer("app", ""), "env: [", "env: [{name: LISTEN, value: '8081'}, ", 1))
	add(long, pod, plain(strings.Repeat("c", 63)))
	add(long, pod[:len(pod)-1]+"q", plain(strings.Repeat("c", 63)))
	claims := "env: [{name: CLAIMS, value: orders}, {name: HOSTNAME, value: orders}, {name: POD_NAME, value: orders}, {name: POD_NAMESPACE, value: shop}, {name: CONTAINER, value: app}, "
	add("app", "liar", strings.Replace(stubContainer("liar", ", securityContext: {capabilities: {add: [SYS_ADMIN]}}"), "env: [", claims, 1))
	f := follow(t, url)
	c.apply(t, b.String())
	within(t, 2*time.Minute, "all run", func() bool { return len(new(stubs).running()) == n })
	require.Contains(t, c.run(t, "kubectl --namespace app logs liar"), "claims to be orders")
	within(t, 20*time.Second, "all are named", func() bool {
		return f.namedNow() == n
	})
	time.Sleep(soon)
	f.report(t, "names that look like others'")
	require.Empty(t, f.mistakes())
	c.remove(t, "shop", "shop-orders", "app", long)
	within(t, time.Minute, "none is left", func() bool { return len(new(stubs).running()) == 0 })
}
