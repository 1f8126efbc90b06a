package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Blocks of the main README, by what is in no other.
const (
	sidecarBlock = "kubectl apply -k deploy/kubernetes/sidecar"
	plainBlock   = "kubectl apply -k deploy/kubernetes/daemonset"
	helmBlock    = "helm install"
)

// Where the Prometheus operator is not, the plain agents need nothing, the
// sidecar's example is all there but its PodMonitor, and Helm installs nothing
// half: each says what is missing.
func testWithoutOperator(t *testing.T, c *cluster, main *readme) {
	out, err := c.sh(t, main.block(t, sidecarBlock))
	require.Error(t, err)
	require.Contains(t, out, `no matches for kind "PodMonitor"`)
	require.Contains(t, out, "deployment.apps/tomcat created")
	c.pods(t, "tcpdiag-example", "tcpdiag.github.io/sidecar=true", 2)

	c.run(t, main.block(t, plainBlock))
	c.pods(t, "tcpdiag", "app.kubernetes.io/name=tcpdiag", 1)
	c.remove(t, "tcpdiag-example", "tcpdiag")

	out, err = c.sh(t, main.block(t, helmBlock))
	require.Error(t, err)
	require.Contains(t, out, `no matches for kind "PodMonitor"`)
	require.Contains(t, out, `no matches for kind "PrometheusRule"`)
	require.Contains(t, out, "ensure CRDs are installed first")
	require.Empty(t, c.left(t, "tcpdiag"))
	c.remove(t, "tcpdiag")
	out = c.run(t, helmPlain)
	require.Contains(t, out, "STATUS: deployed")
	c.pods(t, "tcpdiag", "app.kubernetes.io/name=tcpdiag", 1)
	c.remove(t, "tcpdiag")
}
