package render_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/fleetreport"
)

// ofFleet has a listener of each kind: a pod's, one whose pod's name is not known, a
// host's, and a port that nobody listens on.
func ofFleet() *api.Fleet {
	stage := func(used, most int) *api.FleetStage { return &api.FleetStage{Used: &used, Max: &most} }
	return &api.Fleet{
		Schema: api.FleetSchema, Time: time.Date(2026, 5, 4, 3, 12, 0, 0, time.UTC), FromRules: true, Status: "down",
		Counts: map[string]int{"down": 1, "losing": 1, "warning": 1, "ok": 14997}, Agents: 250, AgentsNotScraped: 2, Omitted: 14996,
		Warnings: []string{"partial response: a store is not reachable"},
		Listeners: []api.FleetListener{
			{Job: "tcpdiag", Instance: "10.0.0.2:10889", NetNS: "9", Port: 9090, Process: "java", Status: "down", Cause: "no_listener", ClientsTurnedAway: new(uint64(42))},
			{
				Cluster: "east", Job: "tcpdiag", Instance: "10.0.0.1:10889", Node: "worker-1", NetNS: "2", Address: "[::]:8080", Port: 8080,
				Namespace: "shop", Pod: "orders-7c9d8b6f5-x2x1z", Container: "app", Process: "java", Status: "losing", Cause: "max_connections",
				ClientsTurnedAway: new(uint64(1312)), DroppedPackets: new(uint64(1200)), FullestRatio: new(1.0),
				AcceptQueue: stage(101, 101), Connections: stage(8192, 8192), Threads: stage(200, 200),
			},
			{Job: "tcpdiag", Instance: "10.0.0.1:10889", Node: "worker-1", NetNS: "3", Address: "[::]:8080", Port: 8080, PodUID: "0b51", Process: "java", Status: "warning", Cause: "max_threads", ClientsTurnedAway: new(uint64(0)), AcceptQueue: stage(3, 101), Connections: &api.FleetStage{Used: new(30)}},
			{Job: "web", Instance: "db-1:10889", NetNS: "1", Address: "127.0.0.1:8080", Port: 8080, Process: "na\x1bme", Status: "ok", FullestRatio: new(0.2)},
		},
	}
}

func TestFleetGolden(t *testing.T) {
	for _, width := range []int{80, 120} {
		var b bytes.Buffer
		require.NoError(t, fleetreport.Text(&b, ofFleet(), render.TextOptions{Width: width}))
		checkGolden(t, fmt.Sprintf("fleet_%d.txt", width), b.Bytes())
		require.NotContains(t, b.String(), "\x1b")
	}
	var b bytes.Buffer
	require.NoError(t, fleetreport.JSON(&b, ofFleet()))
	checkGolden(t, "fleet.json", b.Bytes())
}

// Where the rules are missing the table says so.
func TestFleetWithoutRules(t *testing.T) {
	f := ofFleet()
	f.FromRules, f.AgentsNotScraped, f.Warnings, f.Omitted = false, 0, nil, 0
	var b bytes.Buffer
	require.NoError(t, fleetreport.Text(&b, f, render.TextOptions{Width: 80}))
	require.Contains(t, strings.Join(strings.Fields(b.String()), " "), "The recording rules have left nothing (deploy/prometheus/fleet.rules.yml)")
	require.NotContains(t, b.String(), "more listener")
}
