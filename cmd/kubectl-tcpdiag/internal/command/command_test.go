package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"

	document "github.com/tcpdiag/tcpdiag/internal/api"
)

const (
	snapshotPath = "/api/v1/snapshot"
	why          = "because all 200 threads are busy"
)

func TestTheSidecarIsAskedFirst(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app", "tcpdiag")
	c.addAgent("n1")
	unseen := document.Unavailable{What: "clients by outcome: handshakes", Why: "packet sockets are not allowed", How: "grant CAP_NET_RAW"}
	c.answer("shop/orders-1:10889", snapshotPath, overloaded(t, pod, func(s *document.Snapshot) { s.Unavailable = append(s.Unavailable, unseen) }))
	for _, args := range [][]string{{"orders-1"}, {"pod/orders-1"}, {"deploy/orders", "-n", "shop"}} {
		stdout, stderr, code := c.run(args...)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, why)
		require.Contains(t, stdout, "kubectl tcpdiag orders-1 -n shop --thread-dump", "not a command for the node's shell")
		require.NotContains(t, stdout, "sudo")
		require.Contains(t, stderr, "tcpdiag: shop/orders-1 by the sidecar; not seen: clients (it lacks CAP_NET_RAW)")
	}
	unseen.Why, unseen.How = "clients: no process is known in network namespace 7", ""
	c.answer("shop/orders-1:10889", snapshotPath, overloaded(t, pod, func(s *document.Snapshot) { s.Unavailable = append(s.Unavailable, unseen) }))
	_, stderr, code := c.run("orders-1", "--exit-status")
	require.Contains(t, stderr, "not seen: clients (clients: no process is known in network namespace 7)", "the agent's own reason")
	require.Equal(t, 12, code)
}

// A node agent answers for many pods: only what it says of this one's uid is shown.
func TestTheNodeAgentIsAskedForThePodAlone(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app")
	c.addAgent("n1")
	c.answer("tcpdiag/agent-n1:10889", snapshotPath, overloaded(t, pod, func(s *document.Snapshot) {
		other := s.Listeners[0]
		other.Process = new(*other.Process)
		other.Process.PodUID, other.Port, other.Address = "uid-another", 9999, "[::]:9999"
		s.Listeners = append(s.Listeners, other)
		s.Unavailable = append(s.Unavailable, document.Unavailable{What: "environ of pid 99", Why: "permission denied"})
	}))
	stdout, stderr, code := c.run("orders-1", "-o", "json")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "by the agent of n1")
	var said document.Snapshot
	require.NoError(t, json.Unmarshal([]byte(stdout), &said))
	require.Len(t, said.Listeners, 1)
	require.Equal(t, uint16(8080), said.Listeners[0].Port)
	require.Empty(t, said.Unavailable)
	require.Equal(t, "shop/orders-1", said.Host)
}

func TestAnEphemeralContainerIsAddedOnceAndAskedAgain(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app")
	uid, gid := int64(1001), int64(2002)
	pod.Status.ContainerStatuses[0].User = &core.ContainerUser{Linux: &core.LinuxContainerUser{UID: uid, GID: gid}}
	c.answer("shop/orders-1:10899", snapshotPath, overloaded(t, pod, nil))
	for _, said := range []string{"by the ephemeral container tcpdiag-1 (uid 1001, gid 2002) that ends in 15m0s", "by the ephemeral container tcpdiag-1 that was there"} {
		stdout, stderr, code := c.run("orders-1")
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, why)
		require.Contains(t, stderr, said)
	}
	require.Len(t, c.ephemerals, 1)
	one := c.ephemerals[0]
	require.Equal(t, "app", one.TargetContainerName)
	require.Equal(t, []string{"agent", "--lifetime=15m0s", "--web.listen-address=:10899", "--log-level=warn"}, one.Args)
	require.Equal(t, &core.SecurityContext{
		RunAsUser: &uid, RunAsGroup: &gid, RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}}, SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
	}, one.SecurityContext)

	// Another port is another container, which serves elsewhere.
	c.answer("shop/orders-1:10898", snapshotPath, overloaded(t, pod, nil))
	_, stderr, code := c.run("orders-1", "--port", "8080")
	require.Zero(t, code, stderr)
	require.Len(t, c.ephemerals, 2)
	require.Equal(t, "tcpdiag-2", c.ephemerals[1].Name)
}

// Nothing is added to pods that were not named, and to few that were selected.
func TestEphemeralContainersAreNotAddedByTheDozen(t *testing.T) {
	c := newCluster(t)
	for _, name := range strings.Fields("a b c d e f g h") {
		pod := c.add("orders-"+name, "n1", "app")
		pod.Status.ContainerStatuses[0].User = &core.ContainerUser{Linux: &core.LinuxContainerUser{UID: 1, GID: 1}}
		c.answer("shop/orders-"+name+":10899", snapshotPath, overloaded(t, pod, nil))
	}
	_, stderr, code := c.run()
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no sidecar and no node agent watches any of the 8 pods in namespace shop")
	require.Empty(t, c.ephemerals)
	_, stderr, code = c.run("-l", "app=orders")
	require.Equal(t, 1, code, "three pods are not known")
	require.Contains(t, stderr, "--via ephemeral adds one to each")
	require.Len(t, c.ephemerals, 5)
	_, stderr, code = c.run("-l", "app=orders", "--via", "ephemeral")
	require.Zero(t, code, stderr)
	require.Len(t, c.ephemerals, 8)
}

func TestManyPodsAreOneTableWorstFirst(t *testing.T) {
	c := newCluster(t)
	c.addAgent("n1")
	calm := c.add("orders-1", "n1", "app")
	busy := c.add("orders-2", "n2", "app", "tcpdiag")
	c.add("unrelated", "n1", "nginx").Labels = nil
	c.answer("tcpdiag/agent-n1:10889", snapshotPath, overloaded(t, calm, func(s *document.Snapshot) {
		s.Listeners[0].Verdict = document.Verdict{Status: "ok", Summary: "Calm."}
	}))
	c.answer("shop/orders-2:10889", snapshotPath, overloaded(t, busy, nil))
	for _, args := range [][]string{{"-l", "app=orders"}, {"-A"}, {"deploy/orders"}} {
		stdout, stderr, code := c.run(args...)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, "1 losing, 1 ok: 2 listeners")
		require.Less(t, strings.Index(stdout, "shop/orders-2"), strings.Index(stdout, "shop/orders-1"))
		require.Contains(t, stdout, why, "and the answer of the worst")
		require.Empty(t, c.ephemerals)
	}
}

// Each right that is missing is named, with the Role that grants it.
func TestWhatIsDeniedIsNamedWithItsRole(t *testing.T) {
	tests := map[string]struct {
		denied []string
		args   []string
		want   []string
	}{
		"workload":  {[]string{"get deployments"}, []string{"deploy/orders"}, []string{"you may not get deployments.apps in namespace shop", "resources: [deployments, statefulsets, daemonsets, replicasets]"}},
		"pods":      {[]string{"list pods"}, []string{"-l", "app=orders"}, []string{"you may not list pods in namespace shop", "namespace: shop"}},
		"proxy":     {[]string{"get pods/proxy", "create pods/portforward"}, []string{"orders-1", "--via", "sidecar"}, []string{"you may not get pods/proxy in namespace shop", "name: tcpdiag-sidecar"}},
		"agents":    {[]string{"list pods in tcpdiag"}, []string{"orders-1", "--via", "node"}, []string{"you may not list pods in namespace tcpdiag", "name: tcpdiag-agents\n  namespace: tcpdiag"}},
		"ephemeral": {[]string{"patch pods/ephemeralcontainers"}, []string{"orders-1", "--via", "ephemeral"}, []string{"you may not patch pods/ephemeralcontainers in namespace shop", "resources: [pods/ephemeralcontainers]"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			pod := c.add("orders-1", "n1", "app", "tcpdiag")
			pod.Status.ContainerStatuses[0].User = &core.ContainerUser{Linux: &core.LinuxContainerUser{UID: 1, GID: 1}}
			c.addAgent("n1")
			for _, d := range test.denied {
				c.denied[d] = true
			}
			stdout, stderr, code := c.run(test.args...)
			require.Equal(t, 1, code)
			require.Empty(t, stdout)
			for _, want := range append(test.want, "kind: Role") {
				require.Contains(t, stderr, want)
			}
		})
	}
}

func TestWrongUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"--via \"magic\": give sidecar, node or ephemeral": {"orders-1", "--via", "magic"},
		"--output \"xml\": give text or json":              {"orders-1", "-o", "xml"},
		"--port 70000":                                     {"orders-1", "--port", "70000"},
		"a node agent is not the JVM's user":               {"orders-1", "--thread-dump", "--via", "node"},
		"give pods by name, or -l or -A":                   {"orders-1", "-A"},
		"\"cronjob/x\": give a pod, deploy/NAME":           {"cronjob/x"},
		"unknown flag: --frobnicate":                       {"--frobnicate"},
	} {
		_, stderr, code := newCluster(t).run(args...)
		require.Equal(t, 2, code, stderr)
		require.Contains(t, stderr, want)
	}
}

// What answers in a pod is a stranger.
func TestHostileAnswers(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app", "tcpdiag")
	c.answer("shop/orders-1:10889", snapshotPath, overloaded(t, pod, func(s *document.Snapshot) {
		s.Listeners[0].Verdict.Answer.What = "\x1b]0;owned\x07\u202etxt"
		s.Listeners[0].Process.Comm = "\u009b31mjava"
		s.Host = "another-pod"
	}))
	for _, args := range [][]string{{"orders-1"}, {"orders-1", "-v"}, {"orders-1", "-o", "json"}} {
		stdout, stderr, code := c.run(args...)
		require.Zero(t, code, stderr)
		for _, bad := range []string{"\x1b", "\x07", "\u202e", "\u009b", "another-pod"} {
			require.NotContains(t, stdout+stderr, bad)
		}
	}
	for what, body := range map[string][]byte{
		"values":           []byte(`{"schema":"tcpdiag.snapshot/v1","listeners":[` + strings.Repeat("{},", 210_000) + `{}]}`),
		"MiB":              []byte(strings.Repeat(" ", 9<<20)),
		"no tcpdiag agent": []byte(`<html>`),
	} {
		c.answer("shop/orders-1:10889", snapshotPath, body)
		_, stderr, code := c.run("orders-1", "--via", "sidecar")
		require.Equal(t, 1, code)
		require.Contains(t, stderr, what)
	}
}

func TestIncidentsAreTheLatestFirst(t *testing.T) {
	c := newCluster(t)
	c.addAgent("n1")
	c.addAgent("n2")
	for node, began := range map[string]string{"n1": "2026-05-04T03:00:00Z", "n2": "2026-05-04T04:00:00Z"} {
		at, err := time.Parse(time.RFC3339, began)
		require.NoError(t, err)
		body, err := json.Marshal(document.Incidents{Schema: document.IncidentsSchema, Incidents: []document.IncidentSummary{{ID: "id-" + node, Address: "[::]:8080", Began: at, Status: "losing", Title: "max_connections \x1b[2J"}}})
		require.NoError(t, err)
		c.answer("tcpdiag/agent-"+node+":10889", "/api/v1/incidents", body)
	}
	stdout, stderr, code := c.run("incidents")
	require.Zero(t, code, stderr)
	require.Less(t, strings.Index(stdout, "id-n2"), strings.Index(stdout, "id-n1"))
	require.NotContains(t, stdout, "\x1b")
}

func TestReportAndWatch(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app", "tcpdiag")
	c.answer("shop/orders-1:10889", snapshotPath, overloaded(t, pod, func(s *document.Snapshot) { s.Listeners[0].Process.Comm = "<script>" }))
	file := filepath.Join(t.TempDir(), "page.html")
	_, stderr, code := c.run("report", "orders-1", "-o", file)
	require.Zero(t, code, stderr)
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(page), "all 200 threads are busy")
	require.NotContains(t, string(page), "<script> 4242")

	stdout, stderr, code := c.run("watch", "orders-1", "-o", "json", "--interval", "100ms", "--for", "1s")
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Greater(t, len(lines), 1)
	require.True(t, json.Valid([]byte(lines[0])))
}

func TestCompletion(t *testing.T) {
	c := newCluster(t)
	c.add("orders-1", "n1", "app")
	t.Setenv("KUBECONFIG", c.config)
	for word, args := range map[string][]string{"deploy/": {""}, "orders-1": {"watch", "ord"}, "ephemeral": {"--via", ""}, "app": {"orders-1", "-c", ""}, "x": {"--context", ""}} {
		var stdout, stderr bytes.Buffer
		require.Zero(t, Main(t.Context(), append([]string{"__complete"}, args...), &stdout, &stderr))
		require.Contains(t, stdout.String(), word)
	}
}

// The image is the chart's where the build is no release.
func TestTheImageIsTheReleasedOne(t *testing.T) {
	chart, err := os.ReadFile("../../../../deploy/helm/tcpdiag/Chart.yaml")
	require.NoError(t, err)
	require.Contains(t, string(chart), "appVersion: "+released)
	require.Equal(t, "tcpdiag/tcpdiag:"+released, image())
}

// In a pod in which nothing else listens an agent shows its own port, of which nobody asks.
func TestAnAgentIsNoAnswer(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app", "tcpdiag")
	c.answer("shop/orders-1:10889", snapshotPath, overloaded(t, pod, func(s *document.Snapshot) { s.Listeners[0].Process.Comm = "tcpdiag" }))
	_, stderr, code := c.run("orders-1")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "has found no JVM that listens")
}

// A watch of a workload has the pods that take the place of others.
func TestWatchFollowsPodsThatAreReplaced(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app", "tcpdiag")
	c.answer("shop/orders-1:10889", snapshotPath, overloaded(t, pod, nil))
	time.AfterFunc(500*time.Millisecond, func() {
		c.mu.Lock()
		next := c.add("orders-2", "n1", "app", "tcpdiag")
		delete(c.pods, "shop/orders-1")
		delete(c.answers, "shop/orders-1:10889")
		c.mu.Unlock()
		c.answer("shop/orders-2:10889", snapshotPath, overloaded(t, next, nil))
	})
	stdout, stderr, code := c.run("watch", "deploy/orders", "-o", "json", "--interval", "100ms", "--for", "4s")
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Contains(t, lines[0], "shop/orders-1")
	require.Contains(t, lines[len(lines)-1], "shop/orders-2")
	require.NotContains(t, lines[len(lines)-1], "shop/orders-1")
}

// One node's agent that does not answer takes nothing from what the others say, and each agent is
// asked once for all pods of its node.
func TestOneAgentIsSilent(t *testing.T) {
	c := newCluster(t)
	c.addAgent("n1")
	c.addAgent("n2")
	var listeners []document.Listener
	for _, name := range strings.Fields("a b c d e") {
		pod := c.add("orders-"+name, "n1", "app")
		var s document.Snapshot
		require.NoError(t, json.Unmarshal(overloaded(t, pod, nil), &s))
		listeners = append(listeners, s.Listeners...)
	}
	c.answer("tcpdiag/agent-n1:10889", snapshotPath, overloaded(t, c.pods["shop/orders-a"], func(s *document.Snapshot) { s.Listeners = listeners }))
	stdout, stderr, code := c.run()
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "5 losing: 5 listeners")
	require.Contains(t, stderr, "tcpdiag: the agent of n2: ")
	require.Equal(t, 1, c.asks["tcpdiag/agent-n1:10889"])
}

// Where another way answers, one that should have is told of.
func TestABrokenWayIsToldOf(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app")
	c.addAgent("n1")
	c.answer("tcpdiag/agent-n1:10889", snapshotPath, []byte("<html>"))
	pod.Status.ContainerStatuses[0].User = &core.ContainerUser{Linux: &core.LinuxContainerUser{UID: 1, GID: 1}}
	c.answer("shop/orders-1:10899", snapshotPath, overloaded(t, pod, nil))
	_, stderr, code := c.run("orders-1")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "tcpdiag: node, which was tried before: what answers there is no tcpdiag agent, or one of another version than this")
}

// In the node's own network an ephemeral container serves at the loopback, at a port that another
// pod's has not, and only what is known to be the pod's is shown.
func TestAPodInTheNodesNetwork(t *testing.T) {
	c := newCluster(t)
	args := map[string]bool{}
	for _, name := range []string{"edge-1", "edge-2"} {
		pod := c.add(name, "n1", "app")
		pod.Spec.HostNetwork = true
		pod.Status.ContainerStatuses[0].User = &core.ContainerUser{Linux: &core.LinuxContainerUser{UID: 1, GID: 1}}
		c.denied["create pods/portforward"] = true
		_, stderr, code := c.run(name)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "you may not create pods/portforward in namespace shop")
		require.Contains(t, stderr, "name: tcpdiag-host-network")
		at := c.ephemerals[len(c.ephemerals)-1].Args[2]
		require.Regexp(t, `^--web.listen-address=127.0.0.1:2\d{4}$`, at)
		args[at] = true
	}
	require.Len(t, args, 2)

	pod := c.add("edge-3", "n1", "app", "tcpdiag")
	pod.Spec.HostNetwork = true
	c.answer("shop/edge-3:10889", snapshotPath, overloaded(t, pod, func(s *document.Snapshot) {
		others, nobodys := s.Listeners[0], s.Listeners[0]
		others.Process = new(*others.Process)
		others.Process.PodUID, others.Port = "uid-another", 9999
		nobodys.Process, nobodys.Port = nil, 22
		s.Listeners = append(s.Listeners, others, nobodys)
	}))
	stdout, stderr, code := c.run("edge-3", "-o", "json")
	require.Zero(t, code, stderr)
	var said document.Snapshot
	require.NoError(t, json.Unmarshal([]byte(stdout), &said))
	require.Len(t, said.Listeners, 1)
	require.Equal(t, uint16(8080), said.Listeners[0].Port)
}
