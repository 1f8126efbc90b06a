package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// Every command line and configuration file in the manifests is one that the
// agent of this checkout takes: it reads its configuration and finds it valid.
func TestTheAgentTakesWhatTheManifestsGiveIt(t *testing.T) {
	tcpdiag := filepath.Join(t.TempDir(), "tcpdiag")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", tcpdiag, "./cmd/tcpdiag")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	check := func(args []string, config string) (string, error) {
		file := filepath.Join(t.TempDir(), "tcpdiag.yml")
		require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
		args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "--config=") })
		out, err := exec.CommandContext(t.Context(), tcpdiag, append(args, "--config="+file, "--check-config")...).CombinedOutput()
		return string(out), err
	}
	for _, folder := range []string{"sidecar", "sidecar/apart"} {
		tomcat := pod(t, one[*apps.Deployment](t, decoded(t, built(t, folder))))
		said, err := check(container(t, &tomcat.Spec, "tcpdiag").Args, "")
		require.NoError(t, err, "%s: %s", folder, said)
	}
	for name, v := range valueSets(t) {
		objects := rendered(t, v)
		config := ""
		if _, given := v["config"]; given {
			config = one[*core.ConfigMap](t, objects).Data["tcpdiag.yml"]
		}
		args := pod(t, one[*apps.DaemonSet](t, objects)).Spec.Containers[0].Args
		said, err := check(args, config)
		require.NoError(t, err, "%s: %s", name, said)
	}
	said, err := check([]string{"agent", "--port=http"}, "")
	require.Error(t, err, said)
	said, err = check([]string{"agent"}, "target: [{port: 8080}]")
	require.Error(t, err)
	require.Contains(t, said, "targets", "the nearest key")
}
