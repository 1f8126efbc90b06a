package main

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
)

// target are the labels of a scraped pod: what Kubernetes' service discovery
// reports, the operator's own relabelling (it comes first), then the monitor's.
func target(t *testing.T, relabelings []monitoring.RelabelConfig) map[string]string {
	t.Helper()
	labels := map[string]string{
		"__meta_kubernetes_namespace": "tcpdiag", "__meta_kubernetes_pod_name": "tcpdiag-x7k2p",
		"__meta_kubernetes_pod_container_name": "tcpdiag", "__meta_kubernetes_pod_node_name": "worker-1",
		"namespace": "tcpdiag", "pod": "tcpdiag-x7k2p", "container": "tcpdiag", "job": "tcpdiag", "endpoint": "metrics",
	}
	for _, r := range relabelings {
		switch r.Action {
		case "", "replace":
			require.Len(t, r.SourceLabels, 1)
			require.Empty(t, r.Regex)
			require.Contains(t, labels, string(r.SourceLabels[0]))
			labels[r.TargetLabel] = labels[string(r.SourceLabels[0])]
		case "labeldrop":
			drop := regexp.MustCompile("^(?:" + r.Regex + ")$")
			maps.DeleteFunc(labels, func(name, _ string) bool { return drop.MatchString(name) })
		default:
			require.Fail(t, "unknown action", r.Action)
		}
	}
	maps.DeleteFunc(labels, func(name, _ string) bool { return strings.HasPrefix(name, "__") })
	return labels
}

// An alert on a listener never names the pod of an agent that watches others:
// "pod" and "namespace" are the application's, or are not there.
func TestTargetsOfTheNodeAgent(t *testing.T) {
	want := map[string]string{
		"job": "tcpdiag", "endpoint": "metrics", "node": "worker-1",
		"agent_pod": "tcpdiag-x7k2p", "agent_namespace": "tcpdiag",
	}
	pods := one[*monitoring.PodMonitor](t, rendered(t, values(t, "podMonitor: {enabled: true}")))
	require.Equal(t, want, target(t, pods.Spec.PodMetricsEndpoints[0].RelabelConfigs))
	services := one[*monitoring.ServiceMonitor](t, rendered(t, values(t, "serviceMonitor: {enabled: true}")))
	require.Equal(t, want, target(t, services.Spec.Endpoints[0].RelabelConfigs))
}

// A sidecar's pod is the application's. Its container is not: the label is the
// listener's in tcpdiag_listener_info, and would become exported_container.
func TestTargetsOfTheSidecar(t *testing.T) {
	monitor := one[*monitoring.PodMonitor](t, decoded(t, built(t, "sidecar")))
	labels := target(t, monitor.Spec.PodMetricsEndpoints[0].RelabelConfigs)
	require.Equal(t, "tcpdiag-x7k2p", labels["pod"])
	require.Equal(t, "tcpdiag", labels["namespace"])
	require.NotContains(t, labels, "container")
}
