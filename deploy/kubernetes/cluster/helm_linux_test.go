package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The release's life: installed, refused a wrong value, upgraded, removed.
func testHelm(t *testing.T, c *cluster, main *readme) {
	require.Contains(t, c.run(t, main.block(t, helmBlock)), "STATUS: deployed")
	c.requireRelease(t, agents, 1)
	requireAgent(t, c.pods(t, agents, anAgent, 1)[0], "SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID")
	c.run(t, "kubectl --namespace tcpdiag get podmonitor/tcpdiag serviceaccount/tcpdiag")
	for _, name := range []string{"alerting", "recording"} {
		c.requireRules(t, name)
	}
	dashboards, err := c.client.CoreV1().ConfigMaps(agents).List(t.Context(), meta.ListOptions{LabelSelector: "grafana_dashboard=1"})
	require.NoError(t, err)
	require.Len(t, dashboards.Items, 2)

	out, err := c.sh(t, "helm upgrade tcpdiag deploy/helm/tcpdiag --namespace tcpdiag --reuse-values --set hostNetwork=true")
	require.Error(t, err)
	require.Contains(t, out, "hostNetwork")
	c.requireRelease(t, agents, 1)

	c.run(t, "helm upgrade tcpdiag deploy/helm/tcpdiag --namespace tcpdiag --reuse-values --set dacReadSearch=true --set podMonitor.enabled=false")
	c.requireRelease(t, agents, 2)
	within(t, 30*time.Second, "the agent is rolled", func() bool {
		pod := c.pods(t, agents, anAgent, 1)[0]
		return slices.Contains(pod.Spec.Containers[0].SecurityContext.Capabilities.Add, "DAC_READ_SEARCH")
	})
	requireAgent(t, c.pods(t, agents, anAgent, 1)[0], "SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID", "DAC_READ_SEARCH")
	_, err = c.sh(t, "kubectl --namespace tcpdiag get podmonitor/tcpdiag")
	require.Error(t, err, "turned off")
	c.requireRules(t, "alerting") // still there

	c.run(t, "helm uninstall tcpdiag --namespace tcpdiag")
	within(t, 30*time.Second, "nothing is left", func() bool { return len(c.left(t, agents)) == 0 })
	c.remove(t, agents)
}

// A user who has the plain agents and continues with Helm is stopped, command by command
// and with nothing changed; once the plain ones are deleted, it works.
func testPlainThenHelm(t *testing.T, c *cluster, main *readme) {
	c.run(t, main.block(t, plainBlock))
	before := c.pods(t, agents, anAgent, 1)[0]
	out, err := c.sh(t, main.block(t, helmBlock))
	require.Error(t, err)
	require.Contains(t, out, `namespaces "tcpdiag" already exists`)
	out, err = c.sh(t, "set +e\n"+main.block(t, helmBlock)) // typed on a terminal
	require.Error(t, err)
	require.Contains(t, out, "exists and cannot be imported into the current release")
	require.Equal(t, before.UID, c.pods(t, agents, anAgent, 1)[0].UID)
	c.run(t, "kubectl delete -k deploy/kubernetes/daemonset")
	require.Contains(t, c.run(t, main.block(t, helmBlock)), "STATUS: deployed")
	c.pods(t, agents, anAgent, 1)
	c.remove(t, agents)
}

// The chart's own README, one block after the other, and its notes: in a
// namespace that allows only baseline no agent comes, until the command of the
// notes is run.
func testChart(t *testing.T, c *cluster, chart *readme) {
	c.run(t, chart.block(t, helmBlock))
	c.requireRelease(t, agents, 1)
	c.run(t, chart.block(t, "helm upgrade --install"))
	c.requireRelease(t, agents, 2)
	monitors := c.output(t, "kubectl get podmonitors,prometheusrules --namespace tcpdiag --selector release=prometheus --output name")
	require.Len(t, bytes.Fields(monitors), 4, "a PodMonitor, and recording, alerting and fleet rules")
	c.remove(t, agents)

	c.run(t, "kubectl create namespace tcpdiag\nkubectl label namespace tcpdiag "+enforce+"=baseline")
	notes := c.run(t, helmPlain)
	requireRefused(t, c.refusal(t, agents))
	require.Contains(t, notes, "Nothing scrapes them yet")
	c.run(t, noted(t, notes, "kubectl label"))
	requireAgent(t, c.pods(t, agents, anAgent, 1)[0], "SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID")
	c.run(t, strings.ReplaceAll(noted(t, notes, "helm upgrade"), "…", "deploy/helm/tcpdiag --namespace tcpdiag"))
	require.NotContains(t, c.run(t, "helm get notes tcpdiag --namespace tcpdiag"), "Nothing scrapes them yet")
	c.remove(t, agents)
}

// Each file of values that the chart is tested with is one that a server takes.
func testValues(t *testing.T, c *cluster) {
	files, err := filepath.Glob(filepath.Join(root, "deploy/helm/tcpdiag/ci/*-values.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			c.run(t, "kubectl create namespace tcpdiag\nkubectl create namespace monitoring")
			c.run(t, "helm install tcpdiag deploy/helm/tcpdiag --namespace tcpdiag --values deploy/helm/tcpdiag/ci/"+name)
			c.requireRelease(t, agents, 1)
			c.run(t, "helm uninstall tcpdiag --namespace tcpdiag")
			within(t, 30*time.Second, "nothing is left", func() bool {
				return len(c.left(t, agents)) == 0 && len(c.left(t, "monitoring")) == 0
			})
			c.remove(t, agents, "monitoring")
		})
	}
}

// noted is the line of the notes with a command.
func noted(t *testing.T, notes, command string) string {
	t.Helper()
	lines := strings.Split(notes, "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "  "+command) })
	require.GreaterOrEqual(t, i, 0, "%s in\n%s", command, notes)
	return strings.TrimSpace(lines[i])
}

// requireRelease holds that Helm calls the release deployed.
func (c *cluster) requireRelease(t *testing.T, namespace string, revision int) {
	t.Helper()
	var status struct {
		Version int
		Info    struct{ Status string }
	}
	c.into(t, &status, "helm status tcpdiag --output json --namespace "+namespace)
	require.Equal(t, "deployed", status.Info.Status)
	require.Equal(t, revision, status.Version)
}

// requireRules holds that the server kept every rule of a file as it is there.
func (c *cluster) requireRules(t *testing.T, name string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, "deploy/prometheus", name+".rules.yml"))
	require.NoError(t, err)
	var want map[string]any
	require.NoError(t, yaml.Unmarshal(source, &want))
	require.NotEmpty(t, want["groups"])
	var stored struct{ Spec map[string]any }
	c.into(t, &stored, "kubectl get prometheusrule tcpdiag-"+name+" --namespace tcpdiag --output json")
	require.Equal(t, want, stored.Spec)
}

// left is what a namespace has that Kubernetes itself did not put there.
func (c *cluster) left(t *testing.T, namespace string) []string {
	t.Helper()
	kinds := "$(kubectl api-resources --namespaced --verbs=list --output name | grep -v ^events | paste -sd,)"
	all := strings.Fields(string(c.output(t, "kubectl get "+kinds+" --namespace "+namespace+" --output name")))
	return slices.DeleteFunc(all, func(name string) bool {
		return name == "configmap/kube-root-ca.crt" || name == "serviceaccount/default"
	})
}
