package cluster

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// notification is what Alertmanager sends to a webhook.
type notification struct {
	Receiver, Status string
	Alerts           []struct {
		Labels, Annotations map[string]string
		StartsAt            time.Time
	}
}

// testAlert has an overloaded pod's alert arrive: the node's agent is scraped as the
// chart's PodMonitor says, the rules and Alertmanager's configuration are those that are shipped,
// and kube-state-metrics knows the workload.
func testAlert(t *testing.T, c *cluster, pod core.Pod) {
	for _, program := range []string{"prometheus", "prometheus-alertmanager"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("Debian: " + program)
		}
	}
	var mu sync.Mutex
	var arrived []notification
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n notification
		if json.NewDecoder(r.Body).Decode(&n) == nil {
			mu.Lock()
			arrived = append(arrived, n)
			mu.Unlock()
		}
	}))
	t.Cleanup(receiver.Close)
	began := time.Now()
	c.startAlerting(t, receiver.URL)
	var one notification
	within(t, 3*time.Minute, "the page arrives", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range arrived {
			if n.Receiver == "pager" && n.Status == "firing" && n.Alerts[0].Labels["alertname"] == "TcpdiagBacklogOverflow" &&
				strings.Contains(n.Alerts[0].Annotations["description"], "Deployment") {
				one = n
				return true
			}
		}
		return false
	})
	t.Logf("RESULT the page has arrived %.0f s after the first scrape", time.Since(began).Seconds())
	require.Len(t, one.Alerts, 1)
	said := one.Alerts[0]
	text, err := yaml.Marshal(map[string]any{"labels": said.Labels, "annotations": said.Annotations})
	require.NoError(t, err)
	t.Logf("RESULT as it arrived at the receiver %s:\n%s", one.Receiver, text)
	require.Contains(t, said.Annotations["summary"], "shop/"+pod.Name+" on "+nodeName)
	require.Contains(t, said.Annotations["summary"], "20/20 connections")
	require.Contains(t, said.Annotations["description"], "It is of Deployment shop/orders.")
	require.Equal(t, "https://github.com/tcpdiag/tcpdiag/blob/main/docs/troubleshooting.md#max_connections", said.Annotations["runbook_url"])
	require.True(t, strings.HasPrefix(said.Annotations["dashboard_url"], "https://grafana.example.org/d/tcpdiag-backlog?var-job=tcpdiag&"), said.Annotations["dashboard_url"])
	require.Equal(t, nodeName, said.Labels["node"])
	require.NotContains(t, said.Labels, "pod", "of the agent")
}

// startAlerting runs kube-state-metrics, Prometheus and Alertmanager.
func (c *cluster) startAlerting(t *testing.T, receiver string) {
	t.Helper()
	state, own, manager := freePort(t), freePort(t), freePort(t)
	start(t, c.dir, c.program("kube-state-metrics"), "--kubeconfig="+c.file("admin.kubeconfig"), "--host=127.0.0.1", "--port="+state,
		"--telemetry-host=127.0.0.1", "--telemetry-port="+freePort(t), "--resources=pods,replicasets")

	shipped, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/alertmanager.yml"))
	require.NoError(t, err)
	require.Contains(t, string(shipped), "http://127.0.0.1:9099")
	c.put(t, "alertmanager.yml", strings.ReplaceAll(string(shipped), "http://127.0.0.1:9099", receiver))
	start(t, c.dir, lookPath(t, "prometheus-alertmanager"), "--config.file=alertmanager.yml", "--storage.path=alertmanager",
		"--web.listen-address=127.0.0.1:"+manager, "--cluster.listen-address=")

	rules, err := filepath.Abs(filepath.Join(root, "deploy/prometheus"))
	require.NoError(t, err)
	config, err := yaml.Marshal(map[string]any{
		"global": map[string]any{
			"scrape_interval": "5s", "scrape_timeout": "4s", "evaluation_interval": "5s",
			"external_labels": map[string]any{"grafana": "https://grafana.example.org"},
		},
		"rule_files": []string{rules + "/*.rules.yml"},
		"alerting":   map[string]any{"alertmanagers": []any{map[string]any{"static_configs": []any{map[string]any{"targets": []string{"127.0.0.1:" + manager}}}}}},
		"scrape_configs": []any{
			map[string]any{"job_name": "kube-state-metrics", "honor_labels": true, "static_configs": []any{map[string]any{"targets": []string{net.JoinHostPort("127.0.0.1", state)}}}},
			c.monitored(t),
		},
	})
	require.NoError(t, err)
	c.put(t, "alerting.yml", string(config))
	start(t, c.dir, lookPath(t, "prometheus"), "--config.file=alerting.yml", "--storage.tsdb.path=alerting", "--web.listen-address=127.0.0.1:"+own)
	p := prometheus{"http://127.0.0.1:" + own}
	within(t, time.Minute, "the agent is scraped", func() bool {
		return len(p.query(t, `tcpdiag_listener_info{namespace="shop"}`)) > 0
	})
}

// monitored is the chart's PodMonitor as the operator writes it for Prometheus: the pods that it
// selects, the labels that every monitor gives, then its own relabelings.
func (c *cluster) monitored(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/kubernetes/daemonset/podmonitor.yaml"))
	require.NoError(t, err)
	var monitor struct {
		Spec struct {
			Selector            struct{ MatchLabels map[string]string }
			PodMetricsEndpoints []struct {
				Port, Path        string
				Relabelings       []map[string]any
				MetricRelabelings []map[string]any
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &monitor))
	require.Len(t, monitor.Spec.PodMetricsEndpoints, 1)
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	require.Empty(t, endpoint.MetricRelabelings)
	relabel := []any{
		map[string]any{"source_labels": []string{"__meta_kubernetes_pod_container_port_name"}, "regex": endpoint.Port, "action": "keep"},
		map[string]any{"source_labels": []string{"__meta_kubernetes_namespace"}, "target_label": "namespace"},
		map[string]any{"source_labels": []string{"__meta_kubernetes_pod_name"}, "target_label": "pod"},
		map[string]any{"source_labels": []string{"__meta_kubernetes_pod_container_name"}, "target_label": "container"},
		map[string]any{"source_labels": []string{"__meta_kubernetes_pod_label_app_kubernetes_io_name"}, "target_label": "job"},
	}
	for label, value := range monitor.Spec.Selector.MatchLabels {
		name := "__meta_kubernetes_pod_label_" + regexp.MustCompile(`[^a-zA-Z0-9]`).ReplaceAllString(label, "_")
		relabel = append(relabel, map[string]any{"source_labels": []string{name}, "regex": value, "action": "keep"})
	}
	for _, own := range endpoint.Relabelings {
		snake := map[string]any{}
		for name, value := range own {
			snake[strings.ToLower(regexp.MustCompile(`[A-Z]`).ReplaceAllString(name, "_$0"))] = value
		}
		relabel = append(relabel, snake)
	}
	return map[string]any{"job_name": "monitored", "metrics_path": endpoint.Path, "relabel_configs": relabel, "static_configs": c.discovered(t)}
}

// discovered are the agents' pods with the labels that Prometheus' discovery of Kubernetes gives
// them: Debian's is built without it.
func (c *cluster) discovered(t *testing.T) (targets []any) {
	t.Helper()
	for _, pod := range c.pods(t, agents, anAgent, 1) {
		labels := map[string]string{
			"__meta_kubernetes_namespace": pod.Namespace, "__meta_kubernetes_pod_name": pod.Name, "__meta_kubernetes_pod_node_name": pod.Spec.NodeName,
		}
		for name, value := range pod.Labels {
			labels["__meta_kubernetes_pod_label_"+regexp.MustCompile(`[^a-zA-Z0-9]`).ReplaceAllString(name, "_")] = value
		}
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				labels["__meta_kubernetes_pod_container_name"], labels["__meta_kubernetes_pod_container_port_name"] = container.Name, port.Name
				at := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port.ContainerPort)))
				targets = append(targets, map[string]any{"targets": []string{at}, "labels": labels})
			}
		}
	}
	return targets
}

func (c *cluster) put(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(c.file(name), []byte(text), 0o600))
}

func lookPath(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	require.NoError(t, err, fmt.Sprintf("Debian: %s", program))
	return path
}
