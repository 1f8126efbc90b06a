package observability

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Grafana is given to read at its start.
func TestGrafanaProvisioning(t *testing.T) {
	dir := t.TempDir()
	o := GrafanaOptions{Dashboards: "/d", Prometheus: "http://127.0.0.1:9090"}
	require.NoError(t, o.provision(dir))
	source, err := os.ReadFile(filepath.Join(dir, "datasources", "tcpdiag.yml"))
	require.NoError(t, err)
	require.YAMLEq(t, `{apiVersion: 1, datasources: [{name: Prometheus, uid: prometheus, type: prometheus, access: proxy, url: "http://127.0.0.1:9090", isDefault: true}]}`, string(source))
	boards, err := os.ReadFile(filepath.Join(dir, "dashboards", "tcpdiag.yml"))
	require.NoError(t, err)
	require.YAMLEq(t, `{apiVersion: 1, providers: [{name: tcpdiag, type: file, options: {path: /d}}]}`, string(boards))
}

// A Grafana unpacked anywhere, and one that is missing.
func TestGrafanaHome(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, "bin"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(home, "conf"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, "bin", "grafana-server"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", filepath.Join(home, "bin"))
	_, err := grafanaHome()
	if _, system := os.Stat("/usr/share/grafana/conf/defaults.ini"); system != nil {
		require.ErrorContains(t, err, "defaults.ini")
	}
	require.NoError(t, os.WriteFile(filepath.Join(home, "conf", "defaults.ini"), nil, 0o644))
	got, err := grafanaHome()
	require.NoError(t, err)
	require.Equal(t, home, got)
	t.Setenv("PATH", t.TempDir())
	_, err = grafanaHome()
	require.Error(t, err)
}
