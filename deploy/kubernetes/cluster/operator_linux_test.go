package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The Prometheus operator's module, and that of its types: the CRDs are those
// of the types that the tests in the folder above decode into.
const (
	operator      = "github.com/prometheus-operator/prometheus-operator"
	operatorTypes = operator + "/pkg/apis/monitoring"
)

// operatorFolder is the operator's module, fetched and verified by the go
// command.
func operatorFolder(t *testing.T) string {
	t.Helper()
	version := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", operatorTypes)
	version.Dir = ".."
	of, err := version.Output()
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", operator+"@"+strings.TrimSpace(string(of))).Output()
	require.NoError(t, err, "%s", out)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &module))
	return module.Dir
}

// addOperator adds what of the operator an API server knows.
func (c *cluster) addOperator(t *testing.T) {
	t.Helper()
	folder := filepath.Join(operatorFolder(t), "example", "prometheus-operator-crd")
	for _, name := range []string{"podmonitors", "servicemonitors", "prometheusrules", "scrapeconfigs"} {
		c.run(t, "kubectl create -f "+filepath.Join(folder, "monitoring.coreos.com_"+name+".yaml"))
		within(t, time.Minute, name+" is established", func() bool { // without conditions at first, of which kubectl wait complains
			return c.command(t.Context(), "kubectl wait --for condition=established --timeout=30s crd/"+name+".monitoring.coreos.com").Run() == nil
		})
	}
}

// The schemas of the CRDs find what is planted, and nothing in what is ours.
func testSchemas(t *testing.T, c *cluster) {
	all := string(c.output(t, "helm template tcpdiag deploy/helm/tcpdiag --namespace default --skip-tests --set podMonitor.enabled=true --set prometheusRule.enabled=true"))
	apply := func(t *testing.T, manifest string) (string, error) {
		path := filepath.Join(t.TempDir(), "manifest.yaml")
		require.NoError(t, os.WriteFile(path, []byte(manifest), 0o600))
		return c.sh(t, "kubectl apply --validate=strict --dry-run=server --namespace default -f "+path)
	}
	out, err := apply(t, all)
	require.NoError(t, err)
	require.Equal(t, 6, strings.Count(out, "created (server dry run)"))
	scraped := string(c.output(t, "helm template tcpdiag deploy/helm/tcpdiag --namespace default --skip-tests --show-only templates/scrapeconfig.yaml --set scrapeConfig.enabled=true"))
	out, err = apply(t, scraped)
	require.NoError(t, err, out)
	out, err = apply(t, strings.ReplaceAll(scraped, "role: Pod", "role: Pods"))
	require.Error(t, err)
	require.Contains(t, out, "spec.kubernetesSDConfigs[0].role")
	scaled, err := os.ReadFile(filepath.Join(root, "deploy/kubernetes/scaling/hpa.yaml"))
	require.NoError(t, err)
	out, err = apply(t, strings.ReplaceAll(string(scaled), "namespace: shop", "namespace: default"))
	require.NoError(t, err, out)
	require.Contains(t, out, "horizontalpodautoscaler.autoscaling/")
	for _, tt := range []struct{ name, was, is, says string }{
		{"an unknown field of a PodMonitor", "podMetricsEndpoints:", "podMetricEndpoints:", `unknown field "spec.podMetricEndpoints"`},
		{"an interval without a unit", "interval: 15s", `interval: "15"`, "spec.podMetricsEndpoints[0].interval"},
		{"an unknown field of a rule", "- alert: TcpdiagListenerDown", "- alert: TcpdiagListenerDown\n          fro: 1m", `.fro"`},
		{"a rule that waits for nonsense", "        for: ", "        for: soon ", "spec.groups[0].rules"},
		{"an unknown field of a container", "imagePullPolicy:", "imagePolicy:", `unknown field "spec.template.spec.containers[0].imagePolicy"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			planted := strings.ReplaceAll(all, tt.was, tt.is)
			require.NotEqual(t, all, planted)
			out, err := apply(t, planted)
			require.Error(t, err)
			require.Contains(t, out, tt.says)
		})
	}
}
