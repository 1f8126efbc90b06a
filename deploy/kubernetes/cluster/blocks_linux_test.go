package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBlocks finds the blocks that the tests of the cluster run, without one.
func TestBlocks(t *testing.T) {
	node := readBlocks(t, "deploy/kubernetes/daemonset/README.md", "sh")
	for _, text := range []string{plainBlock, "configmap", "curl"} {
		node.block(t, text)
	}
	sidecar := readBlocks(t, "deploy/kubernetes/sidecar/README.md", "yaml")
	for _, text := range []string{"components:", `sidecar: "true"`, "runAsGroup"} {
		sidecar.block(t, text)
	}
}

// The commands of the page that says which way is for whom, each of which a test runs.
const (
	askOrders   = "deploy/orders -n shop"
	helmPlain   = "helm install tcpdiag deploy/helm/tcpdiag --namespace tcpdiag --create-namespace"
	applyScaler = "kubectl apply -f deploy/kubernetes/scaling/keda.yaml"
)

func TestEachWayIsRun(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/kubernetes/README.md"))
	require.NoError(t, err)
	var commands []string
	for _, found := range regexp.MustCompile("`((?:kubectl (?:tcpdiag|apply)|helm install) [^`]+)`").FindAllStringSubmatch(string(text), -1) {
		commands = append(commands, found[1])
	}
	require.Equal(t, []string{"kubectl tcpdiag " + askOrders, sidecarBlock, plainBlock, helmPlain, applyScaler}, commands)
}
