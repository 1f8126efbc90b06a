package cluster

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
)

// The previous chart, of the release before pods had names, packed as helm package does.
const formerChart = "deploy/kubernetes/cluster/testdata/tcpdiag-0.0.9.tgz"

// published pushes the chart to a registry on loopback, in the way of the release workflow; what to give helm.
func (c *cluster) published(t *testing.T, version string) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	where := strings.TrimPrefix(server.URL, "http://") + "/tcpdiag/charts"
	oras := ""
	if path := c.program("oras"); exists(path) {
		oras = "ORAS=" + path + " "
	}
	c.run(t, "PLAIN_HTTP=1 "+oras+"deploy/helm/publish.sh "+version+" "+where+" "+t.TempDir())

	// What Artifact Hub asks for: the chart's own tag, and the repository's metadata.
	hub, err := name.NewTag(where+"/tcpdiag:artifacthub.io", name.Insecure)
	require.NoError(t, err)
	image, err := remote.Image(hub)
	require.NoError(t, err)
	manifest, err := image.Manifest()
	require.NoError(t, err)
	require.Equal(t, "application/vnd.cncf.artifacthub.config.v1+yaml", string(manifest.Config.MediaType))
	require.Len(t, manifest.Layers, 1)
	require.Equal(t, "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml", string(manifest.Layers[0].MediaType))
	layer, err := image.LayerByDigest(manifest.Layers[0].Digest)
	require.NoError(t, err)
	content, err := layer.Compressed()
	require.NoError(t, err)
	defer content.Close()
	got, err := io.ReadAll(content)
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join(root, "deploy/helm/artifacthub-repo.yml"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	return "oci://" + where + "/tcpdiag --plain-http --version " + version
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The chart from a registry, and a release of the previous chart upgraded to it: with its own values as it
// was, with the new defaults with names, and back again.
func testRegistry(t *testing.T, c *cluster) {
	chart := c.published(t, "0.1.0")
	c.run(t, "kubectl create namespace tcpdiag\nkubectl label namespace tcpdiag "+enforce+"=privileged")
	require.Contains(t, c.run(t, "helm install tcpdiag "+chart+" --namespace tcpdiag"), "STATUS: deployed")
	c.requireRelease(t, agents, 1)
	requireAgent(t, c.pods(t, agents, anAgent, 1)[0], "SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID")
	c.run(t, "helm uninstall tcpdiag --namespace tcpdiag --wait")

	c.run(t, "helm install tcpdiag "+formerChart+" --namespace tcpdiag --set dacReadSearch=true --set podMonitor.enabled=true --set prometheusRule.enabled=true --set config.max_listeners=300")
	c.requireRelease(t, agents, 1)
	previous := c.pods(t, agents, anAgent, 1)[0]
	require.False(t, mounts(previous, "/var/log/pods"))
	c.run(t, "helm upgrade tcpdiag "+chart+" --namespace tcpdiag --reuse-values")
	c.requireRelease(t, agents, 2)
	require.Equal(t, "1", string(c.output(t, "kubectl --namespace tcpdiag get daemonset tcpdiag --output jsonpath={.metadata.generation}")), "nothing new, unasked: no agent is restarted")
	c.requireRules(t, "alerting")

	c.run(t, "helm upgrade tcpdiag "+chart+" --namespace tcpdiag --reset-then-reuse-values")
	c.requireRelease(t, agents, 3)
	named := c.agentAfter(t, previous)
	requireAgent(t, named, "SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID", "DAC_READ_SEARCH")
	require.True(t, mounts(named, "/var/log/pods"))
	require.Contains(t, string(c.output(t, "helm get values tcpdiag --namespace tcpdiag")), "max_listeners: 300")

	c.run(t, "helm rollback tcpdiag 1 --namespace tcpdiag")
	c.requireRelease(t, agents, 4)
	require.False(t, mounts(c.agentAfter(t, named), "/var/log/pods"))
	c.run(t, "helm uninstall tcpdiag --namespace tcpdiag")
	within(t, 30*time.Second, "nothing is left", func() bool { return len(c.left(t, agents)) == 0 })
	c.remove(t, agents)
}

// agentAfter is the one that has taken the place of another.
func (c *cluster) agentAfter(t *testing.T, previous core.Pod) core.Pod {
	t.Helper()
	var now core.Pod
	within(t, 30*time.Second, "the agent is rolled", func() bool {
		now = c.pods(t, agents, anAgent, 1)[0]
		return now.UID != previous.UID
	})
	return now
}

func mounts(pod core.Pod, path string) bool {
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		if m.MountPath == path {
			return m.ReadOnly
		}
	}
	return false
}
