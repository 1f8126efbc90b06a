package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	helmregistry "helm.sh/helm/v4/pkg/registry"
	apps "k8s.io/api/apps/v1"
)

// The chart is pushed to a registry as the release does it, and what is pulled from there renders
// the same; Artifact Hub's annotations are those of the artifact.
func TestChartInARegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	c, err := loader.Load(chartFolder)
	require.NoError(t, err)
	archive, err := chartutil.Save(c, t.TempDir())
	require.NoError(t, err)
	packed, err := os.ReadFile(archive)
	require.NoError(t, err)

	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptWriter(io.Discard),
		helmregistry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "none.json")))
	require.NoError(t, err)
	ref := strings.TrimPrefix(server.URL, "http://") + "/tcpdiag/charts/tcpdiag:" + c.Metadata.Version
	pushed, err := client.Push(packed, ref)
	require.NoError(t, err)
	pulled, err := client.Pull(ref)
	require.NoError(t, err)
	require.Equal(t, pushed.Manifest.Digest, pulled.Manifest.Digest)
	require.Contains(t, string(pulled.Manifest.Data), `"artifacthub.io/category":"monitoring-logging"`)

	again, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
	require.NoError(t, err)
	require.Equal(t, c.Metadata.Annotations, again.Metadata.Annotations)
	path := filepath.Join(t.TempDir(), "pulled.tgz")
	require.NoError(t, os.WriteFile(path, pulled.Chart.Data, 0o600))
	want, err := renderChart(t.Context(), chartFolder, everything())
	require.NoError(t, err)
	got, err := renderChart(t.Context(), path, everything())
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// A release that was made with the values of the chart before these had the newest of them is
// upgraded as it is with --reuse-values: the same objects, and nothing new mounted.
func TestUpgradeOfTheFormerChart(t *testing.T) {
	old := map[string]any{"kubeletLogs": nil, "networkPolicy": nil, "incidents": nil, "scrapeConfig": nil, "scrapeAnnotations": nil}
	objects := lasting(t, old)
	require.Len(t, objects, 2)
	require.Empty(t, pod(t, one[*apps.DaemonSet](t, objects)).Spec.Volumes)
}
