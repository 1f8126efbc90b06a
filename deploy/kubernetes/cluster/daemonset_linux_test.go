package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	agents   = "tcpdiag"
	anAgent  = "app.kubernetes.io/name=tcpdiag"
	baseline = `violates PodSecurity "baseline:latest"`
)

// One agent on the node, in a namespace that lets it have what it needs; where
// only baseline is allowed it is refused for exactly that.
func testDaemonSet(t *testing.T, c *cluster, main, kubernetes *readme) {
	block := main.block(t, plainBlock)
	require.True(t, strings.HasPrefix(kubernetes.block(t, plainBlock), block+"\n"), "both say the same")
	c.run(t, block)
	requireAgent(t, c.pods(t, agents, anAgent, 1)[0], "SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID")
	requireUnchanged(t, c.run(t, block), 3)

	out := c.run(t, "kubectl label --overwrite namespace tcpdiag "+enforce+"=baseline")
	require.Contains(t, out, "Warning: existing pods in namespace")
	c.run(t, "kubectl --namespace tcpdiag delete pods --all")
	requireRefused(t, c.refusal(t, agents))

	c.run(t, block) // labels the namespace again
	requireAgent(t, c.pods(t, agents, anAgent, 1)[0], "SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID")
	c.run(t, "kubectl apply --validate=strict -f deploy/kubernetes/daemonset/podmonitor.yaml")
	c.run(t, "kubectl delete -k deploy/kubernetes/daemonset")
	_, err := c.client.CoreV1().Namespaces().Get(t.Context(), agents, meta.GetOptions{})
	require.ErrorContains(t, err, "not found")
}

// The dashboards by hand, where Grafana runs.
func testDashboards(t *testing.T, c *cluster, kubernetes *readme) {
	c.run(t, "kubectl create namespace monitoring")
	c.run(t, kubernetes.block(t, "configmap"))
	list, err := c.client.CoreV1().ConfigMaps("monitoring").List(t.Context(), meta.ListOptions{LabelSelector: "grafana_dashboard=1"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Contains(t, list.Items[0].Data, "backlog.json")
	require.Contains(t, list.Items[0].Data, "fleet.json")
	c.remove(t, "monitoring")
}

// requireAgent holds what the server has made of the pod.
func requireAgent(t *testing.T, pod core.Pod, capabilities ...core.Capability) {
	t.Helper()
	require.True(t, pod.Spec.HostPID)
	require.False(t, pod.Spec.HostNetwork)
	require.Empty(t, pod.Spec.InitContainers)
	require.Len(t, pod.Spec.Containers, 1)
	agent := pod.Spec.Containers[0]
	require.Equal(t, []string{"agent", "--all-namespaces"}, agent.Args[:2])
	require.Equal(t, &core.Capabilities{Drop: []core.Capability{"ALL"}, Add: capabilities}, agent.SecurityContext.Capabilities)
	for _, v := range pod.Spec.Volumes {
		require.Nil(t, v.Projected, "no token")
		if v.HostPath != nil {
			require.Contains(t, []string{"/var/log/pods", "/var/log/containers"}, v.HostPath.Path, "nothing else of the node")
		}
	}
}

// requireRefused holds that a controller was denied the pod for hostPID and the
// two capabilities, and for nothing else.
func requireRefused(t *testing.T, message string) {
	t.Helper()
	_, why, found := strings.Cut(message, baseline+": ")
	require.True(t, found, message)
	require.Equal(t, `non-default capabilities (container "tcpdiag" must not include "SYS_ADMIN", "SYS_PTRACE" in securityContext.capabilities.add), host namespaces (hostPID=true), hostPath volumes (volumes "pods", "containers")`, why)
}
