package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	example    = "tcpdiag-example"
	hasSidecar = "tcpdiag.github.io/sidecar=true"
	enforce    = "pod-security.kubernetes.io/enforce"
)

// The example's pods are made where only restricted pods are, each with the
// sidecar, and the PodMonitor is stored whole.
func testSidecar(t *testing.T, c *cluster, main *readme) {
	block := main.block(t, sidecarBlock)
	require.NotContains(t, c.run(t, block), "Warning")
	c.requireRestricted(t, example)
	for _, pod := range c.pods(t, example, hasSidecar, 2) {
		requireSidecar(t, pod, true, []string{"agent", "--shutdown-delay=20s", "--incident-dir=/var/lib/tcpdiag", "--incident-max-mib=64", "--port", "8080"})
	}
	var monitor struct {
		Spec struct {
			Selector            meta.LabelSelector
			PodMetricsEndpoints []struct{ Port, Path, Interval string }
		}
	}
	c.into(t, &monitor, "kubectl get podmonitor tcpdiag-sidecar --namespace "+example+" --output json")
	require.Equal(t, hasSidecar, meta.FormatLabelSelector(&monitor.Spec.Selector))
	require.Equal(t, []struct{ Port, Path, Interval string }{{"tcpdiag", "/metrics", "15s"}}, monitor.Spec.PodMetricsEndpoints)
	requireUnchanged(t, c.run(t, block), 4)
	c.remove(t, example)
}

func testApart(t *testing.T, c *cluster) {
	const block = "kubectl apply -k deploy/kubernetes/sidecar/apart"
	require.NotContains(t, c.run(t, block), "Warning")
	c.requireRestricted(t, example)
	for _, pod := range c.pods(t, example, hasSidecar, 2) {
		requireSidecar(t, pod, false, []string{"agent", "--shutdown-delay=20s", "--incident-dir=/var/lib/tcpdiag", "--incident-max-mib=64", "--port=8080", "--max-connections=8192", "--accept-count=100", "--max-threads=200"})
	}
	requireUnchanged(t, c.run(t, block), 4)
	c.remove(t, example)
}

// A Deployment with the label gets the sidecar from the kustomization.yaml that
// the README shows, and one without does not.
func testComponent(t *testing.T, c *cluster, shown *readme) {
	dir := t.TempDir()
	repository, err := filepath.Abs(root)
	require.NoError(t, err)
	repository, err = filepath.Rel(dir, repository)
	require.NoError(t, err)
	kustomization := strings.ReplaceAll(shown.block(t, "components:"), "https://github.com/tcpdiag/tcpdiag//", repository+"/")
	require.Contains(t, kustomization, repository+"/deploy/kubernetes/sidecar/component")
	label, ids := shown.block(t, `sidecar: "true"`), shown.block(t, "runAsGroup")
	for path, text := range map[string]string{
		"kustomization.yaml": "namespace: shop\n" + kustomization,
		"deployment.yaml":    deployment("basket", label, ids) + "---\n" + deployment("database", "metadata:", ids),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	c.run(t, "kubectl create namespace shop\nkubectl label namespace shop "+enforce+"=restricted")
	c.run(t, "kubectl apply --validate=strict -k "+dir)
	c.requireRestricted(t, "shop")
	basket := c.pods(t, "shop", "app=basket", 1)[0]
	requireSidecar(t, basket, true, []string{"agent", "--shutdown-delay=20s", "--incident-dir=/var/lib/tcpdiag", "--incident-max-mib=64"})
	require.Equal(t, int64(1001), *basket.Spec.SecurityContext.RunAsUser)
	require.Empty(t, c.pods(t, "shop", "app=database", 1)[0].Spec.InitContainers)
	c.run(t, "kubectl get podmonitor tcpdiag-sidecar --namespace shop")
	c.remove(t, "shop")
}

// deployment has the metadata and the pod's security context that a README
// shows, each as the block that begins with its key.
func deployment(name, metadata, spec string) string {
	return `apiVersion: apps/v1
kind: Deployment
` + metadata + `
  name: ` + name + `
spec:
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    ` + strings.ReplaceAll(spec, "\n", "\n    ") + `
        runAsNonRoot: true
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: app
          image: ` + name + `
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`
}

// requireRestricted holds that a namespace is labelled so and that the server
// acts on it: what asks for no less than everything is refused.
func (c *cluster) requireRestricted(t *testing.T, namespace string) {
	t.Helper()
	of, err := c.client.CoreV1().Namespaces().Get(t.Context(), namespace, meta.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "restricted", of.Labels[enforce])
	careless := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: "careless"},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "app", Image: "app"}}},
	}
	_, err = c.client.CoreV1().Pods(namespace).Create(t.Context(), careless, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
	require.ErrorContains(t, err, `violates PodSecurity "restricted:latest"`)
}

// requireSidecar holds what the server has made of the pod.
func requireSidecar(t *testing.T, pod core.Pod, shares bool, args []string) {
	t.Helper()
	require.Equal(t, shares, pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace)
	require.Len(t, pod.Spec.InitContainers, 1)
	sidecar := pod.Spec.InitContainers[0]
	require.Equal(t, "tcpdiag", sidecar.Name)
	require.Equal(t, new(core.ContainerRestartPolicyAlways), sidecar.RestartPolicy)
	require.Equal(t, args, sidecar.Args)
	require.Nil(t, sidecar.SecurityContext.RunAsUser, "the pod's")
	require.Equal(t, "64Mi", sidecar.Resources.Limits.Memory().String())
}

// requireUnchanged holds that applying again changed none of n objects.
func requireUnchanged(t *testing.T, out string, n int) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, n)
	for _, line := range lines {
		require.True(t, strings.HasSuffix(line, " unchanged"), line)
	}
}
