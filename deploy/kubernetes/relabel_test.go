package main

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	scraping "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
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
		case "keep": // of a ScrapeConfig: TestOtherWaysToScrape
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
	requireInfo(t, want, pods.Spec.PodMetricsEndpoints[0].MetricRelabelConfigs, true)
	config := one[*scraping.ScrapeConfig](t, rendered(t, values(t, "scrapeConfig: {enabled: true}")))
	require.Equal(t, want, target(t, config.Spec.RelabelConfigs))
	requireInfo(t, want, config.Spec.MetricRelabelConfigs, true)
	services := one[*monitoring.ServiceMonitor](t, rendered(t, values(t, "serviceMonitor: {enabled: true}")))
	require.Equal(t, want, target(t, services.Spec.Endpoints[0].RelabelConfigs))
	requireInfo(t, want, services.Spec.Endpoints[0].MetricRelabelConfigs, true)
}

// A sidecar's pod is the application's. Its container is not: the label is the
// listener's in tcpdiag_listener_info, and would become exported_container.
func TestTargetsOfTheSidecar(t *testing.T) {
	monitor := one[*monitoring.PodMonitor](t, decoded(t, built(t, "sidecar")))
	labels := target(t, monitor.Spec.PodMetricsEndpoints[0].RelabelConfigs)
	require.Equal(t, "tcpdiag-x7k2p", labels["pod"])
	require.Equal(t, "tcpdiag", labels["namespace"])
	require.NotContains(t, labels, "container")
	requireInfo(t, labels, monitor.Spec.PodMetricsEndpoints[0].MetricRelabelConfigs, false)
}

// requireInfo holds that pod, namespace and container of tcpdiag_listener_info are the listener's
// when all is done: Prometheus renames what an exporter says where a target has such a label
// (honor_labels is false), and then relabels.
func requireInfo(t *testing.T, target map[string]string, relabelings []monitoring.RelabelConfig, ofOthers bool) {
	t.Helper()
	info := map[string]string{"namespace": "shop", "pod": "orders-7d9c", "container": "app", "pod_uid": "0b51"}
	if !ofOthers { // a sidecar's listeners are its own pod's
		info["namespace"], info["pod"] = target["namespace"], target["pod"]
	}
	final := maps.Clone(target)
	for name, value := range info {
		if final[name] != "" {
			name = "exported_" + name
		}
		final[name] = value
	}
	for _, r := range relabelings {
		require.Equal(t, "labeldrop", r.Action)
		drop := regexp.MustCompile("^(?:" + r.Regex + ")$")
		maps.DeleteFunc(final, func(name, _ string) bool { return drop.MatchString(name) })
	}
	require.Subset(t, final, info)
	for name := range final {
		require.False(t, strings.HasPrefix(name, "exported_"), name)
	}
}
