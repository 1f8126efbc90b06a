package observability

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clientsAndPeers are an agent with two listeners of two processes: 8080 loses
// clients and waits for a database, 8081 is well and waits for nobody.
func clientsAndPeers() []map[string]string {
	const agent = `job="web",instance="s:1",netns="1"`
	var out []map[string]string
	add := func(name, labels, values string) {
		out = append(out, map[string]string{"series": name + "{" + agent + "," + labels + "}", "values": values})
	}
	for port, clients := range map[string]map[string]string{
		"8080": {"connected": "0+600x60", "delayed": "0x60", "gave_up": "0+60x60", "stalled": "0+30x60"},
		"8081": {"connected": "0+6000x60", "gave_up": "0x60"},
	} {
		add("tcpdiag_listener_info", `listener="[::]:`+port+`",process="java:`+port+`",pod_uid=""`, "1x60")
		for outcome, values := range clients {
			add("tcpdiag_listener_clients_total", `listener="[::]:`+port+`",outcome="`+outcome+`"`, values)
		}
	}
	add("tcpdiag_listener_clients_turned_away_total", `listener="[::]:8080"`, "0+90x60")
	add("tcpdiag_listener_clients_turned_away_total", `listener="[::]:8081"`, "0x60")
	add("tcpdiag_listener_client_capacity", `listener="[::]:8080"`, "26x60")
	add("tcpdiag_listener_clients_inside", `listener="[::]:8080"`, "26x60")
	add("tcpdiag_listener_connections", `listener="[::]:8080",phase="waiting"`, "20x60")
	add("tcpdiag_listener_accept_queue_length", `listener="[::]:8080"`, "6x60")
	add("tcpdiag_listener_fullest_limit_ratio", `listener="[::]:8080"`, "1x60")
	add("tcpdiag_listener_fullest_limit_ratio", `listener="[::]:8081"`, "0.2x60")
	for _, port := range []string{"8080", "8081"} {
		for _, status := range []string{"ok", "warning", "saturated", "losing", "down"} {
			values := "0x60"
			if port == "8081" && status == "ok" {
				values = "1x60"
			} else if port == "8080" && (status == "ok" || status == "losing") {
				values = map[string]string{"ok": "1x40 0x20", "losing": "0x40 1x20"}[status]
			}
			add("tcpdiag_listener_status", `listener="[::]:`+port+`",status="`+status+`"`, values)
		}
		verdict := map[string]string{"8080": `status="losing",cause="max_connections"`, "8081": `status="ok",cause="none"`}[port]
		add("tcpdiag_listener_verdict_info", `listener="[::]:`+port+`",`+verdict, "1x60")
	}
	add("tcpdiag_target_up", `port="8091"`, "0x60")
	add("tcpdiag_target_up", `port="8080"`, "1x60")
	add("tcpdiag_listener_dropped_packets_total", `listener="[::]:8080",cause="max_connections",packet="syn"`, "0+240x60")
	add("tcpdiag_listener_dropped_packets_total", `listener="[::]:8080",cause="slow_accept",packet="syn"`, "0+120x60")
	add("tcpdiag_listener_dropped_packets_total", `listener="[::]:8081",cause="slow_accept",packet="syn"`, "0+60x60")
	add("tcpdiag_listener_overflow_packets_total", `listener="[::]:8080"`, "0+360x60")
	add("tcpdiag_listener_overflow_packets_total", `listener="[::]:8081"`, "0+60x60")
	add("listener:tcpdiag_trouble:max", `listener="[::]:8080",cause="max_connections"`, "_x40 3x9 stale")
	add("listener:tcpdiag_trouble:max", `listener="[::]:8080",cause="slow_accept"`, "_x45 3x4 stale")
	add("listener:tcpdiag_trouble:max", `listener="[::]:8081",cause="slow_accept"`, "_x45 3x4 stale")
	add("tcpdiag_port_refused_clients_total", `port="8080"`, "0+120x60")
	add("tcpdiag_port_refused_clients_total", `port="8081"`, "0+600x60")
	for process, inFlight := range map[string]string{"java:8080": "10x60", "java:8081": "99x60"} {
		peer := `process="` + process + `",peer="10.0.3.7:5432"`
		add("tcpdiag_downstream_connections", peer+`,state="in_flight"`, inFlight)
		add("tcpdiag_downstream_connections", peer+`,state="connecting"`, "2x60")
		add("tcpdiag_downstream_connections", peer+`,state="idle"`, "3x60")
		add("tcpdiag_downstream_oldest_in_flight_seconds", peer, inFlight)
	}
	return out
}

// One listener's clients and the peers of its process are shown, and no others;
// the fleet's tables say clients beside packets, those lost once for each listener.
func TestClientsAndPeersOnDashboards(t *testing.T) {
	const at = `job="web",instance="s:1",netns="1",listener="[::]:`
	sample := func(labels string, value float64) map[string]any {
		return map[string]any{"labels": "{" + labels + "}", "value": value}
	}
	want := map[string][]map[string]any{
		"Clients, by how their attempt ended A":             {sample(`outcome="connected"`, 10), sample(`outcome="gave_up"`, 1), sample(`outcome="stalled"`, .5)},
		"Clients, by how their attempt ended B":             {sample("", 2)},
		"Requests in flight, by peer A":                     {sample(`peer="10.0.3.7:5432"`, 12)},
		"Oldest request in flight, by peer A":               {sample(`peer="10.0.3.7:5432"`, 10)},
		"Listeners, worst first D":                          {sample(at+`8080"`, 1.5), sample(at+`8081"`, 0)},
		"tcpdiag-backlog: Clients turned away A":            {sample("", 2700+3600)}, // and refused
		"tcpdiag-fleet: Clients turned away A":              {sample("", 2700+3600+18000)},
		"Clients beside the room for them A":                {sample("", 360)},
		"Clients beside the room for them C":                {sample("", 480)},
		"Clients beside the room for them D":                {sample("", 26)},
		"Clients beside the room for them E":                {sample("", 26)},
		"Clients beside the room for them F":                {},
		"tcpdiag-backlog: Status over time, where not ok A": {sample(`who="java:8080 s:1",netns="1"`, 3)},
		"tcpdiag-fleet: Status over time, where not ok A": {
			sample(`who="java:8080 s:1",netns="1",listener="[::]:8080"`, 3), sample(`who="s:1 8091",netns="1"`, 4),
		},
		"Top losses B": {sample(at+`8080",cause="max_connections"`, 2700), sample(at+`8081",cause="slow_accept"`, 0)},
	}
	chosen := map[string]string{"job": ".+", "instance": ".+", "netns": "1", "listener": "[::]:8080", "port": "8080"}
	var asked []map[string]any
	for _, d := range dashboards(t) {
		for _, p := range d.drawn() {
			for _, q := range p.Targets {
				samples := want[p.Title+" "+q.RefID]
				if samples == nil {
					samples = want[d.UID+": "+p.Title+" "+q.RefID]
				}
				if samples != nil {
					expr := strings.NewReplacer("$__rate_interval", "4m", "$__range", "30m").Replace(q.Expr)
					asked = append(asked, map[string]any{"expr": insert(expr, chosen), "eval_time": "60m", "exp_samples": samples})
				}
			}
		}
	}
	require.Len(t, asked, len(want))
	path := filepath.Join(t.TempDir(), "clients.test.yml")
	require.NoError(t, writeYAML(path, map[string]any{"rule_files": fleetRules(t), "evaluation_interval": "1m", "tests": []map[string]any{
		{"interval": "1m", "input_series": clientsAndPeers(), "promql_expr_test": asked},
	}}))
	tool(t, "promtool", "test", "rules", path)
}
