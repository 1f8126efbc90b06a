package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The test of the tests: each mistake is one that YAML, and mostly Helm and
// kustomize too, let pass.
func TestMistakesAreFound(t *testing.T) {
	d, err := newDecoder()
	require.NoError(t, err)
	daemonset := string(renderedText(t, everything()))
	sidecar := string(built(t, "sidecar"))
	for _, tt := range []struct{ name, manifest, right, wrong, says string }{
		{"a field in another case", daemonset, "hostPID: true", "hostPid: true", `unknown field "spec.template.spec.hostPid"`},
		{"a field at the wrong depth", daemonset, "  updateStrategy:", "  strategy:", `unknown field "spec.strategy"`},
		{"a string for a number", daemonset, "periodSeconds: 30", `periodSeconds: "30"`, "cannot unmarshal string"},
		{"a number for a string", daemonset, "- --log-level=info", "- 3", "cannot unmarshal number"},
		{"a truth as a string", daemonset, "readOnlyRootFilesystem: true", `readOnlyRootFilesystem: "true"`, "cannot unmarshal string"},
		{"a field given twice", daemonset, "hostPID: true", "hostPID: true\n      hostPID: false", "already set"},
		{"a quantity that is none", daemonset, "memory: 48Mi", "memory: 48 MB", "quantities must match"},
		{"an unknown kind", daemonset, "kind: DaemonSet", "kind: DaemonSets", "no kind"},
		{"an old version", daemonset, "apiVersion: apps/v1", "apiVersion: extensions/v1beta1", "no kind"},
		{"the operator's field", daemonset, "podMetricsEndpoints:", "podMetricsEndpoint:", `unknown field "spec.podMetricsEndpoint"`},
		{"a rule's field", daemonset, "\n          annotations:", "\n          annotation:", "unknown field"},
		{"the sidecar's field", sidecar, "restartPolicy: Always", "restartpolicy: Always", "unknown field"},
		{"the sidecar's type", sidecar, "runAsUser: 1001", "runAsUser: tomcat", "cannot unmarshal string"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.True(t, strings.Contains(tt.manifest, tt.right), tt.right)
			_, err := d.decode([]byte(tt.manifest))
			require.NoError(t, err)
			_, err = d.decode([]byte(strings.Replace(tt.manifest, tt.right, tt.wrong, 1)))
			require.ErrorContains(t, err, tt.says)
		})
	}
}
