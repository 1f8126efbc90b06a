package e2e

import (
	"context"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

func listenerLabel(port int) string { return `listener="[::]:` + strconv.Itoa(port) + `"` }

// A1: 300 clients, threads 200, defaults otherwise, a handler of 5 min: 200 at
// once, 100 wait, nobody fails. They come within three seconds: all in the same
// millisecond would be more than the accept queue holds. Client timeouts:
// connect 1 min, request 5 min.
func TestA1ThreadsFull(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 200, MaxConnections: 8192, AcceptCount: 100})
	warm(t, server)
	agent := startAgent(t, on(server)...)
	scansEverySecond(t, agent)
	drops := counters(t)["ListenDrops"]
	crowd := clients(t, demo.BurstOptions{
		Address: server.Address(), Clients: 300, Rate: 100, Path: hello(5 * time.Minute),
		ConnectTimeout: time.Minute, RequestTimeout: 5 * time.Minute,
	})
	nettest.Within(t, time.Minute, "200 served", func() bool {
		return truth(t, server) == rig.Truth{Busy: 200, Connections: 301}
	})
	require.Equal(t, drops, counters(t)["ListenDrops"], "the machine is too busy for this: the accept queue overflowed")
	d := snapshotWithCPU(t, server.Port, append(on(server), "--interval", "1s")...)
	var series rig.Series
	nettest.Within(t, time.Minute, "the agent has seen it in two looks", func() bool {
		series = agentMetrics(t, agent)
		status, _ := series.Find("tcpdiag_listener_status", listenerLabel(server.Port), `status="saturated"`)
		waiting, _ := series.Find("tcpdiag_listener_connections", listenerLabel(server.Port), `phase="waiting"`)
		return status == 1 && waiting == 100
	})
	seen := agentSnapshot(t, agent)
	require.Equal(t, 200, truth(t, server).Busy, "still at it")

	for _, d := range []*rig.Document{d, seen} {
		l := listener(t, d, server.Port)
		require.Equal(t, 300, l.Connections.Accepted)
		require.Equal(t, 200, l.Connections.InService)
		require.Equal(t, 100, l.Connections.Waiting, "in Tomcat")
		require.Zero(t, l.AcceptQueue.Length)
		require.Equal(t, "saturated", l.Verdict.Status)
		require.Equal(t, "max_threads", l.Verdict.Cause)
		require.Equal(t, []string{"max_threads"}, l.Verdict.Chain, "connectionTimeout and acceptCount are not in it")
		require.NotNil(t, l.Losses)
		require.Zero(t, l.Losses.DroppedPackets)
		require.Equal(t, new(8293), l.Capacity)
	}
	requireGauges(t, series, server.Port, map[string]float64{"in_service": 200, "waiting": 100, "idle": 0, "sending": 0})

	require.Equal(t, 300, crowd.Now().Open, "%s", crowd.Now())
}

func requireGauges(t *testing.T, series rig.Series, port int, phases map[string]float64) {
	t.Helper()
	for phase, want := range phases {
		got, ok := series.Find("tcpdiag_listener_connections", listenerLabel(port), `phase="`+phase+`"`)
		require.True(t, ok, phase)
		require.InDelta(t, want, got, 0, phase)
	}
	status, ok := series.Find("tcpdiag_listener_status", listenerLabel(port), `status="saturated"`)
	require.True(t, ok)
	require.InDelta(t, 1, status, 0)
	length, ok := series.Find("tcpdiag_listener_accept_queue_length", listenerLabel(port))
	require.True(t, ok)
	require.InDelta(t, 0, length, 0)
}

// A9: threads = max-connections = accept-count = 1 and 10 clients of a handler
// of 500 ms. Three get in: 1 + 1 + the kernel's own one. Client timeouts:
// connect 400 ms, below the first SYN retry and below the service time;
// request 30 s.
func TestA9TheKernelsOwnOne(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 1, MaxConnections: 1, AcceptCount: 1})
	warm(t, server)
	result := snapshotLater(t, nil, append(on(server), "--interval", "5s")...)
	time.Sleep(3 * time.Second) // its first snapshot is over
	before := counters(t)
	ten := fill(t, tenClients(server, 400*time.Millisecond), 1, 2)
	require.Equal(t, 7, ten.lost.outcomes(t, time.Minute).Of(demo.ConnectTimeout))
	o := ten.outcomes(t, time.Minute)
	require.Equal(t, 3, o.Of(demo.OK), o.String())
	dropped := counters(t)["ListenDrops"] - before["ListenDrops"]

	l := listener(t, result(), server.Port)
	require.Equal(t, new(3), l.Capacity, "1 + 1 + 1")
	require.Equal(t, new(2), l.AcceptQueue.Peak)
	require.NotNil(t, l.Losses)
	require.Equal(t, dropped, l.Losses.DroppedPackets)
	require.Equal(t, dropped, byCause(l.Losses, "max_connections"))
	require.Equal(t, "losing", l.Verdict.Status)
	require.Equal(t, "max_connections", l.Verdict.Cause)
}

// A9's remedy: accept-count 10 holds them all. Client timeouts as before, the
// last is served after 5 s.
func TestLongA9AcceptCountTen(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 1, MaxConnections: 1, AcceptCount: 10})
	warm(t, server)
	before := counters(t)
	crowd := clients(t, tenClients(server, 400*time.Millisecond))
	crowd.connected(t, 10)
	d := snapshot(t, nil, append(on(server), "--interval", "0")...)
	l := listener(t, d, server.Port)
	require.Equal(t, new(12), l.Capacity)
	o := crowd.outcomes(t, time.Minute)
	require.Equal(t, 10, o.Of(demo.OK), o.String())
	require.Equal(t, before["ListenDrops"], counters(t)["ListenDrops"])
}

func tenClients(server *rig.Tomcat, connect time.Duration) demo.BurstOptions {
	return demo.BurstOptions{
		Address: server.Address(), Clients: 10, Rate: 100, Path: hello(500 * time.Millisecond),
		ConnectTimeout: connect, RequestTimeout: 30 * time.Second,
	}
}

// C2: maxConnections 1, a handler of 5 min: one is inside, the others wait in
// the kernel. Client timeouts: none is reached (connect 1 min, request 5 min).
func TestC2MaxConnectionsOne(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 10, MaxConnections: 1, AcceptCount: 100})
	warm(t, server)
	crowd := clients(t, demo.BurstOptions{
		Address: server.Address(), Clients: 5, Rate: 100, Path: hello(5 * time.Minute),
		ConnectTimeout: time.Minute, RequestTimeout: 5 * time.Minute,
	})
	crowd.connected(t, 5)
	nettest.Within(t, time.Minute, "one served", func() bool { return truth(t, server) == rig.Truth{Busy: 1, Connections: 1} })
	d := snapshotWithCPU(t, server.Port, append(on(server), "--interval", "1s")...)
	require.Equal(t, 1, truth(t, server).Busy, "still the first")
	l := listener(t, d, server.Port)
	require.Equal(t, 1, l.Connections.Accepted)
	require.Equal(t, 1, l.Connections.InService)
	require.Equal(t, 4, l.AcceptQueue.Length)
	require.Equal(t, "saturated", l.Verdict.Status)
	require.Equal(t, "max_connections", l.Verdict.Cause)
	require.Contains(t, l.Verdict.Chain, "max_connections")
	require.NotContains(t, l.Verdict.Chain, "max_threads", "9 of 10 threads are free")
	crowd.leave()
}

// C4: maxThreads 2, maxConnections 3 or 4, acceptCount 1, a handler of 3 s and
// ten clients. Client timeouts: connect 500 ms, below the first SYN retry;
// request 30 s.
func TestLongC4EachStage(t *testing.T) {
	for _, connections := range []int{3, 4} {
		t.Run(strconv.Itoa(connections)+" connections", func(t *testing.T) {
			server := tomcat(t, fourDigits(), rig.Limits{Threads: 2, MaxConnections: connections, AcceptCount: 1})
			warm(t, server)
			ten := fill(t, demo.BurstOptions{
				Address: server.Address(), Clients: 10, Path: hello(3 * time.Second),
				ConnectTimeout: 500 * time.Millisecond, RequestTimeout: 30 * time.Second,
			}, connections, 2)
			inside := connections + 2
			require.Equal(t, 10-inside, ten.lost.outcomes(t, time.Minute).Of(demo.ConnectTimeout), "the others are turned away")
			d := snapshot(t, nil, append(on(server), "--interval", "0")...)
			require.Equal(t, rig.Truth{Busy: 2, Connections: connections}, truth(t, server))
			l := listener(t, d, server.Port)
			require.Equal(t, 2, l.Connections.InService)
			require.Equal(t, connections-2, l.Connections.Waiting)
			require.Equal(t, 2, l.AcceptQueue.Length)
			require.True(t, l.AcceptQueue.Full)
			require.Equal(t, new(inside), l.Capacity)
			require.Equal(t, []string{"accept_queue", "max_connections", "max_threads"}, l.Verdict.Chain)
			o := ten.outcomes(t, time.Minute)
			require.Equal(t, inside, o.Of(demo.OK), o.String())
		})
	}
}

// F5: the process is up and nothing listens on the port.
func TestF5NothingListens(t *testing.T) {
	artifacts(t)
	port := fourDigits()
	o := clients(t, demo.BurstOptions{Address: "127.0.0.1:" + strconv.Itoa(port), Clients: 5}).outcomes(t, time.Minute)
	require.Equal(t, 5, o.Of(demo.Refused), o.String())

	l := listener(t, snapshot(t, nil, "--port", strconv.Itoa(port)), port)
	require.Empty(t, l.Address)
	require.Equal(t, "down", l.Verdict.Status)
	require.Equal(t, "no_listener", l.Verdict.Cause)

	agent := startAgent(t, "--port", strconv.Itoa(port))
	series := agentMetrics(t, agent)
	up, ok := series.Find("tcpdiag_target_up", `port="`+strconv.Itoa(port)+`"`)
	require.True(t, ok, "the series of an expected port is always there")
	require.Zero(t, up)
}

// F7: two connectors of one server, and one of them drops. A handler of 3 s;
// client timeouts: connect 500 ms, below the first SYN retry; request 30 s.
func TestF7OneOfTwoConnectorsDrops(t *testing.T) {
	port := fourDigits()
	server := tomcat(t, port, rig.Limits{Threads: 20, MaxConnections: 100, AcceptCount: 50}, func(o *rig.TomcatOptions) {
		o.ExtraPort, o.ExtraTLS = port+2, true
		o.ExtraLimits = rig.Limits{Threads: 2, MaxConnections: 2, AcceptCount: 1}
	})
	warm(t, server)
	agent := startAgent(t, "--port", strconv.Itoa(port), "--port", strconv.Itoa(port+2))
	before := counters(t)
	calm := clients(t, demo.BurstOptions{
		Address: server.Address(), Clients: 10, Rate: 100, Path: hello(3 * time.Second), RequestTimeout: 30 * time.Second,
	})
	ten := fill(t, demo.BurstOptions{
		Address: server.ExtraAddress(), Clients: 10, Path: hello(3 * time.Second), TLS: unverified(),
		ConnectTimeout: 500 * time.Millisecond, RequestTimeout: 30 * time.Second,
	}, 2, 2)
	require.Equal(t, 10, calm.outcomes(t, time.Minute).Of(demo.OK))
	require.Equal(t, 6, ten.lost.outcomes(t, time.Minute).Of(demo.ConnectTimeout))
	o := ten.outcomes(t, time.Minute)
	require.Equal(t, 4, o.Of(demo.OK), o.String())
	dropped := counters(t)["ListenDrops"] - before["ListenDrops"]
	require.GreaterOrEqual(t, dropped, 6)

	const name = "tcpdiag_listener_dropped_packets_total"
	nettest.Within(t, time.Minute, "the drops are counted", func() bool {
		series := agentMetrics(t, agent)
		require.Zero(t, series.Sum(name, listenerLabel(port)), "the calm one lost nothing")
		return int(series.Sum(name, listenerLabel(port+2))) == dropped
	})
	d := agentSnapshot(t, agent)
	require.Equal(t, "losing", listener(t, d, port+2).Verdict.Status)
	require.Equal(t, "ok", listener(t, d, port).Verdict.Status)
}

// The agent's /metrics on a machine at work passes Prometheus's own check, and
// its other pages answer.
func TestAgentPages(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 4, MaxConnections: 10, AcceptCount: 5})
	warm(t, server)
	agent := startAgent(t, on(server)...)
	for _, page := range []string{"/", "/-/healthy", "/-/ready"} {
		_, err := agent.Get(t.Context(), page)
		require.NoError(t, err)
	}
	metrics, err := agent.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	check := exec.CommandContext(ctx, "promtool", "check", "metrics")
	in, err := check.StdinPipe()
	require.NoError(t, err)
	go func() { _, _ = in.Write(metrics); _ = in.Close() }()
	out, err := check.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))

	series := agentMetrics(t, agent)
	up, ok := series.Find("tcpdiag_target_up", `port="`+strconv.Itoa(server.Port)+`"`)
	require.True(t, ok)
	require.InDelta(t, 1, up, 0)

	server.Stop()
	nettest.Within(t, time.Minute, "the port is down", func() bool {
		series := agentMetrics(t, agent)
		up, ok := series.Find("tcpdiag_target_up", `port="`+strconv.Itoa(server.Port)+`"`)
		_, gauge := series.Find("tcpdiag_listener_accept_queue_length", listenerLabel(server.Port))
		return ok && up == 0 && !gauge
	})
	d := agentSnapshot(t, agent)
	require.Equal(t, "down", listener(t, d, server.Port).Verdict.Status)
}
