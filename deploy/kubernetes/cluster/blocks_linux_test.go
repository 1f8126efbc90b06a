package cluster

import "testing"

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
