package cluster

import (
	"os"
	"testing"
)

const whySkipped = "starts a Kubernetes control plane, whose build takes minutes: make prove PROOF=cluster sets " + enable

// TestCluster shares one cluster among all tests, in this order: the first of
// them has no Prometheus operator.
func TestCluster(t *testing.T) {
	if os.Getenv(enable) == "" {
		t.Skip(whySkipped)
	}
	c := startCluster(t)
	c.addNode(t)
	r := struct{ main, kubernetes, component, chart *readme }{
		readBlocks(t, "deploy/kubernetes/README.md", "sh"),
		readBlocks(t, "deploy/kubernetes/daemonset/README.md", "sh"),
		readBlocks(t, "deploy/kubernetes/sidecar/README.md", "yaml"),
		readBlocks(t, "deploy/helm/tcpdiag/README.md", "sh"),
	}
	t.Run("without the operator", func(t *testing.T) { testWithoutOperator(t, c, r.main) })
	c.addOperator(t)
	t.Run("operator", func(t *testing.T) { testSchemas(t, c) })
	t.Run("sidecar", func(t *testing.T) { testSidecar(t, c, r.main) })
	t.Run("apart", func(t *testing.T) { testApart(t, c) })
	t.Run("component", func(t *testing.T) { testComponent(t, c, r.component) })
	t.Run("daemonset", func(t *testing.T) { testDaemonSet(t, c, r.main, r.kubernetes) })
	t.Run("dashboards", func(t *testing.T) { testDashboards(t, c, r.kubernetes) })
	t.Run("helm", func(t *testing.T) { testHelm(t, c, r.main) })
	t.Run("plain, then helm", func(t *testing.T) { testPlainThenHelm(t, c, r.main) })
	t.Run("chart", func(t *testing.T) { testChart(t, c, r.chart) })
	t.Run("registry", func(t *testing.T) { testRegistry(t, c) })
	t.Run("values", func(t *testing.T) { testValues(t, c) })
	for _, read := range []*readme{r.main, r.kubernetes, r.chart} {
		read.requireAllUsed(t, "kubectl ", "helm ")
	}
}
