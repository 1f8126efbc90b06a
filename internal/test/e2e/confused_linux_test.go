package e2e

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// F10: on an HTTPS connector the kernel cannot distinguish idle from busy, and
// nothing is claimed about it. No client timeouts.
func TestHTTPSIsUnclassified(t *testing.T) {
	for name, port := range map[string]func() int{"four digits": fourDigits, "five digits": fiveDigits} {
		t.Run(name, func(t *testing.T) {
			server := tomcat(t, port(), rig.Limits{Threads: 30, MaxConnections: 100}, func(o *rig.TomcatOptions) { o.TLS = true })
			warm(t, server)
			busy := clients(t, demo.BurstOptions{Address: server.Address(), Clients: 20, Path: hello(20 * time.Second), TLS: unverified()})
			idle := clients(t, demo.BurstOptions{
				Address: server.Address(), Clients: 10, Path: hello(0), TLS: unverified(), Requests: 2, Think: time.Minute,
			})
			nettest.Within(t, time.Minute, "20 busy, 10 idle", func() bool {
				return truth(t, server) == rig.Truth{Busy: 20, Connections: 31} && idle.Now().Of(demo.OK) == 10
			})
			time.Sleep(100 * time.Millisecond)
			d := snapshot(t, nil, append(on(server), "--interval", "0")...)
			require.Equal(t, 20, truth(t, server).Busy, "still at it")
			l := listener(t, d, server.Port)
			require.True(t, l.Connector.TLS)
			require.Equal(t, 30, l.Connections.Accepted)
			require.Equal(t, 30, l.Connections.Unclassified)
			require.Equal(t, "ok", l.Verdict.Status)
			require.Empty(t, l.Verdict.Cause)
			require.True(t, advises(d, "Actuator"), "how to know: %+v", d.Unavailable)
			busy.leave()
			idle.leave()
		})
	}
}

// advises: something is unavailable, and what to do about it names that.
func advises(d *rig.Document, what string) bool {
	for _, u := range d.Unavailable {
		if strings.Contains(u.How, what) {
			return true
		}
	}
	return false
}

// F11, first half: clients that send half a header and wait hold a connection
// but no thread. No client timeouts.
func TestLongHalfHeadersAreNotBusyThreads(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 4, MaxConnections: 100, AcceptCount: 5})
	warm(t, server)
	clients(t, demo.BurstOptions{Address: server.Address(), Clients: 30, Rate: 200, HalfHeader: true}).connected(t, 30)
	nettest.Within(t, time.Minute, "30 accepted, nobody served", func() bool {
		return truth(t, server) == rig.Truth{Connections: 31}
	})
	d := snapshot(t, nil, append(on(server), "--interval", "1s")...)
	l := listener(t, d, server.Port)
	require.Equal(t, 30, l.Connections.Accepted)
	require.LessOrEqual(t, l.Connections.InService, 4, "never more than there are threads")
	require.GreaterOrEqual(t, l.Connections.Unclassified, 26)
	require.Equal(t, "ok", l.Verdict.Status, "no client waits")
	require.NotContains(t, l.Verdict.Chain, "max_threads")
}

// F11, second half: 12 of 20 clients reset while they are served. Tomcat keeps
// their slots until the handler ends, which takes longer than the test, and the
// kernel knows nothing of them any more. Client timeouts: none.
func TestResetConnectionsHoldTheirSlots(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 20, MaxConnections: 20, AcceptCount: 5})
	warm(t, server)
	to := netip.MustParseAddrPort(server.Address())
	served := request(t, to, 20)
	nettest.Within(t, time.Minute, "20 served", func() bool { return truth(t, server).Busy == 20 })
	reset(t, served[:12]...)
	// Six fill the queue and nothing is dropped: a snapshot's first reading, which
	// does not count the reset ones yet, must not be what it says in the end.
	nettest.Queue(t, to, 6)
	d := snapshotWithCPU(t, server.Port, append(on(server), "--interval", "1s")...)
	require.Equal(t, rig.Truth{Busy: 20, Connections: 20}, truth(t, server), "the slots are still held")
	l := listener(t, d, server.Port)
	require.Equal(t, 8, l.Connections.Accepted)
	require.Equal(t, new(12), l.Connections.Reset)
	require.Equal(t, 6, l.AcceptQueue.Length)
	require.Equal(t, "saturated", l.Verdict.Status)
	require.Equal(t, "max_connections", l.Verdict.Cause)
}

// F12: clients that half-close after the request are served and have not
// abandoned anything; those that give up (request timeout 500 ms, handler 3 s)
// have. The agent watches both come and go.
func TestLongHalfClosedIsNotAbandoned(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 20, MaxConnections: 100})
	warm(t, server)
	agent := startAgent(t, on(server)...)
	scansEverySecond(t, agent)
	o := demo.BurstOptions{Address: server.Address(), Clients: 10, Path: hello(3 * time.Second), HalfClose: true}
	half := clients(t, o)
	nettest.Within(t, time.Minute, "ten half-closed connections seen", func() bool {
		d, err := agent.Snapshot(t.Context())
		require.NoError(t, err)
		l := listener(t, d, server.Port)
		require.Equal(t, "ok", l.Verdict.Status)
		return l.Connections.ClientClosed == 10
	})
	require.Equal(t, 10, half.outcomes(t, time.Minute).Of(demo.OK), "served")
	quiet(t, server)
	nettest.Within(t, time.Minute, "the agent has seen them go", func() bool {
		d, err := agent.Snapshot(t.Context())
		require.NoError(t, err)
		return listener(t, d, server.Port).Connections.Accepted == 0
	})
	require.Zero(t, abandoned(t, agent, server), "half-closing is no giving up")

	o.HalfClose, o.RequestTimeout = false, 500*time.Millisecond
	require.Equal(t, 10, clients(t, o).outcomes(t, time.Minute).Of(demo.ReadTimeout))
	quiet(t, server)
	// Which is a lower bound: whose handler ends between the scan's reading of
	// the resets and its walk of the connections is not counted.
	nettest.Within(t, time.Minute, "the abandoned requests are counted", func() bool { return abandoned(t, agent, server) >= 8 })
	require.LessOrEqual(t, abandoned(t, agent, server), 10.0)
}

func abandoned(t *testing.T, agent *rig.Agent, server *rig.Tomcat) float64 {
	t.Helper()
	series := agentMetrics(t, agent)
	value, ok := series.Find("tcpdiag_listener_abandoned_requests_total", listenerLabel(server.Port))
	require.True(t, ok, "the counter exists from the start")
	return value
}
