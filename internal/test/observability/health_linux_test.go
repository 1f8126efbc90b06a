package observability

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	healthyPort = 8301
	losingPort  = 8302
	missingPort = 8303

	agentAddress = "127.0.0.1:10893"
)

// Every query of both dashboards is answered by a real Prometheus, whichever of three
// servers is chosen: one that is well, one that loses clients, one that is not there.
func TestDashboardsOfThreeServers(t *testing.T) {
	a := artifacts(t)
	s := &stack{started: time.Now()}
	for _, port := range []int{healthyPort, losingPort} {
		server, err := demo.Listen(t.Context(), demo.ServerOptions{
			Address: local(port), MaxConnections: 4, AcceptCount: 2, MaxThreads: 2, ServiceTime: 300 * time.Millisecond,
		})
		require.NoError(t, err)
		go func() { _ = server.Serve(t.Context()) }()
	}
	agent, err := a.StartAgent(t.Context(), 10893, "--port", fmt.Sprint(healthyPort), "--port", fmt.Sprint(losingPort), "--port", fmt.Sprint(missingPort), "--max-connections", "4", "--max-threads", "2")
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = agent.Stop() })
	s.watchAt(t, Job{Name: "tcpdiag", Target: agent.Address, ScrapeInterval: scrape}, scrape)
	s.lose(t)

	away := func(port int) float64 {
		v, _ := s.value(t, fmt.Sprintf(`tcpdiag_listener_clients_turned_away_total{listener="%s"}`, local(port)))
		return v
	}
	nettest.Within(t, time.Minute, "clients are turned away", func() bool { return away(losingPort) > 20 })
	nettest.Within(t, time.Minute, "the rules have recorded both in trouble", func() bool {
		n, _ := s.value(t, "count(listener:tcpdiag_trouble:max) and on () listener:tcpdiag_clients_turned_away:trouble3m > 5")
		return n >= 2
	})
	s.fleet(t, a.Tcpdiag)
	for _, port := range []int{healthyPort, losingPort, missingPort} {
		t.Run(fmt.Sprint(port), func(t *testing.T) { s.healthy(t, port) })
	}
	require.Zero(t, away(healthyPort))
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// lose has more clients come than there is room for, to the end of the test.
func (s *stack) lose(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{}, 2)
	for port, rate := range map[int]float64{losingPort: 30, healthyPort: 1} {
		load, err := demo.NewLoad(demo.BurstOptions{
			Address: local(port), Clients: 10_000, Rate: rate, ConnectTimeout: 800 * time.Millisecond, RequestTimeout: 2 * time.Second,
		})
		require.NoError(t, err)
		go func() { load.Run(ctx); done <- struct{}{} }()
	}
	t.Cleanup(func() { cancel(); <-done; <-done })
}

// fleet has the three in one table, the worst first, with the agent's own words.
func (s *stack) fleet(t *testing.T, program string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "fleet", "--prometheus", s.prometheus.URL(), "-o", "json", "--exit-status", "--timeout", "1m")
	out, err := cmd.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 13, exit.ExitCode(), "%s", exit.Stderr)
	var table api.Fleet
	require.NoError(t, json.Unmarshal(out, &table))
	require.True(t, table.FromRules)
	require.Equal(t, 1, table.Agents)
	require.Len(t, table.Listeners, 3)
	missing, losing, healthy := table.Listeners[0], table.Listeners[1], table.Listeners[2]
	require.Equal(t, "down no_listener", missing.Status+" "+missing.Cause)
	require.EqualValues(t, missingPort, missing.Port)
	require.Equal(t, local(losingPort), losing.Address)
	require.Equal(t, "losing", losing.Status)
	require.NotEmpty(t, losing.Cause)
	require.Positive(t, *losing.ClientsTurnedAway)
	require.Equal(t, 4, *losing.Connections.Max)
	require.Equal(t, 2, *losing.Threads.Max)
	require.Equal(t, 3, *losing.AcceptQueue.Max)
	require.Equal(t, "ok", healthy.Status)
	require.Zero(t, *healthy.ClientsTurnedAway)
}

// healthy asks for everything of one listener, and holds what stands in the top row.
func (s *stack) healthy(t *testing.T, port int) {
	top := make(map[string][]Series)
	for _, d := range dashboards(t) {
		inserted := s.inserted(t, d, choice{"job": "tcpdiag", "listener": local(port)})
		for _, p := range d.drawn() {
			for _, q := range p.Targets {
				top[d.UID+"/"+p.Title+"/"+q.RefID] = s.show(t, q, inserted, scrape) // it fails where the answer is an error
			}
		}
	}
	last := func(title string) float64 {
		got := top["tcpdiag-backlog/"+title]
		require.Len(t, got, 1, title)
		return got[0].Values[len(got[0].Values)-1]
	}
	timeline := top["tcpdiag-backlog/Status over time, where not ok/A"]
	fleet := top["tcpdiag-fleet/Status over time, where not ok/A"]
	require.True(t, slices.ContainsFunc(fleet, func(one Series) bool { return one.Labels["listener"] == local(losingPort) }))
	require.False(t, slices.ContainsFunc(fleet, func(one Series) bool { return one.Labels["listener"] == local(healthyPort) }))
	require.True(t, slices.ContainsFunc(fleet, func(one Series) bool { return one.Labels["who"] == agentAddress+" "+fmt.Sprint(missingPort) }))
	for _, one := range fleet {
		require.NotEmpty(t, one.Labels["who"])
	}
	switch port {
	case healthyPort:
		require.Zero(t, last("Status/A"))
		require.Zero(t, last("Clients turned away/A"))
		require.Empty(t, timeline)
	case losingPort:
		const losing = 3
		require.InDelta(t, losing, last("Status/A"), 0)
		require.Greater(t, last("Clients turned away/A"), 20.0)
		require.InDelta(t, 7, last("Clients beside the room for them/E"), 0, "4 connections, acceptCount 2, and one")
		require.True(t, anyValue(top["tcpdiag-backlog/Clients beside the room for them/A"], func(v float64) bool { return v > 0 }))
		require.NotEmpty(t, timeline)
	case missingPort:
		require.Empty(t, top["tcpdiag-backlog/Status/A"])
		require.Empty(t, top["tcpdiag-backlog/Clients turned away/A"])
	}
}
