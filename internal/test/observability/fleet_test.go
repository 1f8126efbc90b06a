package observability

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The fleet's tables name the pod that listens: a sidecar's own, and of an agent
// of a node, whose own pod is no label, the uid of the listener's. A pod that is
// deleted is named while what it lost is shown.
func TestFleetNamesThePodThatListens(t *testing.T) {
	const (
		sidecar = `job="web",namespace="shop",pod="web-1",instance="s:1",netns="1",listener="[::]:8080"`
		node    = `job="tcpdiag",agent_pod="tcpdiag-x7k2p",node="worker-1",instance="n:1",netns="2",listener="[::]:8080"`
		host    = `job="tcpdiag",instance="h:1",netns="3",listener="[::]:8080"`
	)
	var series []map[string]string
	add := func(name, labels, values string) {
		series = append(series, map[string]string{"series": name + "{" + labels + "}", "values": values})
	}
	for labels, info := range map[string]string{sidecar: `,pid="1",pod_uid="5ca"`, host: `,pid="1"`} {
		add("tcpdiag_listener_info", labels+info, "1x60")
	}
	// The number of the network namespace is another pod's afterwards.
	add("tcpdiag_listener_info", node+`,pid="7",pod_uid="gone"`, "1x20 stale")
	add("tcpdiag_listener_info", node+`,pid="8",pod_uid="0b51"`, "_x30 1x30")
	gone := strings.Replace(node, `netns="2"`, `netns="4"`, 1)
	add("tcpdiag_listener_info", gone+`,pid="9",pod_uid="9e2"`, "1x40 stale")
	for _, labels := range []string{sidecar, node, host} {
		add("tcpdiag_listener_limit_used_ratio", labels+`,limit="max_threads"`, "0.5x60")
		add("tcpdiag_connector_limit", labels+`,limit="accept_count"`, "100x60")
		add("tcpdiag_listener_accept_queue_capacity", labels, "51x60")
	}
	for _, labels := range []string{sidecar, node, host, gone} {
		add("tcpdiag_listener_dropped_packets_total", labels+`,cause="jvm_pause",packet="syn"`, "0x38 100x22")
		add("tcpdiag_listener_overflow_packets_total", labels, "0x38 100x22")
		who := labels + map[string]string{node: `,pod="0b51"`, gone: `,pod="9e2"`}[labels]
		add("listener:tcpdiag_trouble:max", who+`,cause="jvm_pause"`, "_x38 3x3 _x19")
		add("listener:tcpdiag_trouble:max", who+`,cause="max_threads"`, "_x41 2 _x18")
		add("listener:tcpdiag_trouble:max", who+`,cause="none"`, "_x50 0x9")
	}

	rows := func(more string, value float64) []map[string]any {
		return []map[string]any{
			{"labels": `{job="web",namespace="shop",pod="web-1",instance="s:1",netns="1",listener="[::]:8080"` + more + `}`, "value": value},
			{"labels": `{job="tcpdiag",pod="0b51",node="worker-1",instance="n:1",netns="2",listener="[::]:8080"` + more + `}`, "value": value},
			{"labels": `{` + host + more + `}`, "value": value},
		}
	}
	lost := append(rows(`,cause="jvm_pause"`, 100), map[string]any{
		"labels": `{job="tcpdiag",pod="9e2",node="worker-1",instance="n:1",netns="4",listener="[::]:8080",cause="jvm_pause"}`, "value": 100.0,
	})
	want := map[string][][]map[string]any{
		"Nearest to a limit":                {rows(`,limit="max_threads"`, 0.5)},
		"Top losses":                        {lost},
		"Backlogs, configured and in force": {rows("", 100), rows("", 50), rows("", 50)},
	}
	var asked []map[string]any
	for _, d := range dashboards(t) {
		for _, p := range d.drawn() {
			for i, samples := range want[p.Title] {
				expr := insert(strings.ReplaceAll(p.Targets[i].Expr, "$__range", "1h"), map[string]string{"job": ".+", "instance": ".+"})
				// rounded, as increase() extrapolates
				asked = append(asked, map[string]any{"expr": "round(" + expr + ", 0.5)", "eval_time": "60m", "exp_samples": samples})
			}
		}
	}
	require.Len(t, asked, 5)
	path := filepath.Join(t.TempDir(), "fleet.test.yml")
	require.NoError(t, writeYAML(path, map[string]any{"tests": []map[string]any{
		{"interval": "1m", "input_series": series, "promql_expr_test": asked},
	}}))
	tool(t, "promtool", "test", "rules", path)
}
