package observability

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the panels show of two instances, one of which is full in every stage and
// for a moment beyond: nothing of the healthy one is added to it, no share is above
// 100 %, and who lost nothing or serves every port is no row.
func TestPanelsOfOneSickInstance(t *testing.T) {
	const (
		sick    = `job="tcpdiag",instance="sick:1",netns="1",listener="[::]:8080"`
		healthy = `job="tcpdiag",instance="well:1",netns="1",listener="[::]:8080"`
	)
	var series []map[string]string
	add := func(name, labels, values string) {
		series = append(series, map[string]string{"series": name + "{" + labels + "}", "values": values})
	}
	for _, one := range []struct{ labels, status, cause, length, syn, accepted, queue, connections, drops, up string }{
		{sick, "losing", "max_connections", "22", "20", "40", "1.05", "1", "0+10x60", "0"},
		{healthy, "ok", "", "0", "0", "4", "0", "0.1", "0x60", "1"},
	} {
		always := func(name, more, value string) { add("tcpdiag_"+name, one.labels+more, value+"x60") }
		always("listener_info", `,port="8080",process="java:8080"`, "1")
		always("listener_verdict_info", `,status="`+one.status+`",cause="`+one.cause+`"`, "1")
		always("listener_accept_queue_capacity", "", "21")
		always("listener_accept_queue_length", "", one.length)
		always("listener_accept_queue_peak", "", one.length)
		always("listener_syn_backlog_length", "", one.syn)
		always("listener_connections", `,phase="waiting"`, one.accepted)
		always("listener_limit_used_ratio", `,limit="accept_queue"`, one.queue)
		always("listener_limit_used_ratio", `,limit="max_connections"`, one.connections)
		always("listener_fullest_limit_ratio", "", one.connections)
		always("connector_limit", `,limit="max_connections"`, "40")
		add("tcpdiag_listener_overflow_packets_total", one.labels, one.drops)
		add("tcpdiag_listener_dropped_packets_total", one.labels+`,cause="max_connections",packet="syn"`, one.drops)
		add("tcpdiag_target_up", strings.Replace(one.labels, `listener="[::]:8080"`, `port="8080"`, 1), one.up+"x60")
	}

	stages := func(values ...float64) (out []map[string]any) {
		for i, name := range []string{"1 SYN backlog", "2 accept queue", "3 connections"} {
			out = append(out, map[string]any{"labels": `{stage="` + name + `",instance="sick:1"}`, "value": values[i]})
		}
		return out
	}
	of := func(labels string, value float64) map[string]any {
		return map[string]any{"labels": "{" + labels + "}", "value": value}
	}
	const queue, connections = `,limit="accept_queue"`, `,limit="max_connections"`
	want := map[string][][]map[string]any{
		"Stages and their limits": {stages(20, 22, 40), stages(20, 21, 40), stages(1, 1, 1)},
		"Room in use":             {{of("", 1)}},
		"Fullest queue":           {{of("", 1)}},
		"How full each stage is":  {{of(queue[1:], 1), of(connections[1:], 1)}},
		"Listeners, worst first": {
			{of(strings.Replace(sick, "[::]", "", 1)+`,cause="no_listener"`, 4), of(sick+`,cause="max_connections"`, 3), of(healthy, 0)},
			{of(sick, 1), of(healthy, .1)},
		},
		"Nearest to a limit":       {{of(sick+queue, 1), of(sick+connections, 1), of(healthy+queue, 0), of(healthy+connections, .1)}},
		"Top losses":               {{of(sick+`,cause="max_connections"`, 600)}},
		"Ports without a listener": {{of(`instance="sick:1",port="8080"`, 1)}},
		"tcpdiag-backlog: Status over time, where not ok": {{of(`who="sick:1 8080",netns="1"`, 4)}}, // "ok all the time" stood there
	}
	chosen := map[string]string{"job": ".+", "instance": ".+", "netns": ".+", "listener": "[::]:8080", "port": "8080"}
	var asked []map[string]any
	for _, d := range dashboards(t) {
		for _, p := range d.drawn() {
			for i, samples := range slices.Concat(want[p.Title], want[d.UID+": "+p.Title]) {
				expr := insert(strings.ReplaceAll(p.Targets[i].Expr, "$__range", "1h"), chosen)
				asked = append(asked, map[string]any{"expr": expr, "eval_time": "60m", "exp_samples": samples})
			}
		}
	}
	require.Len(t, asked, 12)
	path := filepath.Join(t.TempDir(), "sick.test.yml")
	require.NoError(t, writeYAML(path, map[string]any{"rule_files": fleetRules(t), "evaluation_interval": "1m", "tests": []map[string]any{
		{"interval": "1m", "input_series": series, "promql_expr_test": asked},
	}}))
	tool(t, "promtool", "test", "rules", path)
}
