package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Nothing that is installed asks the API server: there is no role to be granted, and no pod has a token, whatever the
// values and in each of the manifests.
func TestNothingAsksTheAPIServer(t *testing.T) {
	sets := make(map[string][]runtime.Object)
	for name, v := range valueSets(t) {
		sets["values "+name] = rendered(t, v)
	}
	for _, folder := range []string{"daemonset", "sidecar"} {
		if _, err := os.Stat(filepath.Join(folder, "kustomization.yaml")); err == nil {
			sets[folder] = decoded(t, built(t, folder))
		}
	}
	require.Contains(t, sets, "daemonset")
	for name, objects := range sets {
		for _, o := range objects {
			require.NotEqual(t, "rbac.authorization.k8s.io", o.GetObjectKind().GroupVersionKind().Group, name)
			switch o := o.(type) {
			case *core.ServiceAccount:
				require.Equal(t, new(false), o.AutomountServiceAccountToken, name)
			case *apps.DaemonSet:
				require.Equal(t, new(false), o.Spec.Template.Spec.AutomountServiceAccountToken, name)
			case *core.Pod:
				require.Equal(t, new(false), o.Spec.AutomountServiceAccountToken, name)
			}
		}
	}
}
