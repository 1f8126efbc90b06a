package observability

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// The same burst twice with half a minute between, on a real Tomcat. Between them the
// listener is quiet, says what was lost, and is losing no more: not for what the clients
// of the first burst repeat, which have left.
func TestLongTwoBursts(t *testing.T) {
	a := artifacts(t)
	t.Parallel()
	tomcat, err := rig.StartTomcat(t.Context(), rig.TomcatOptions{
		Artifacts: a, Port: 8310, ManagementPort: 8311,
		Limits: rig.Limits{Threads: 4, MinSpare: 4, MaxConnections: 20, AcceptCount: 5},
	})
	require.NoError(t, err)
	t.Cleanup(tomcat.Stop)
	agent, err := a.StartAgent(t.Context(), 10894, "--port", "8310")
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = agent.Stop() })

	look := func() api.Listener {
		body, err := get(t.Context(), "http://"+agent.Address+"/api/v1/snapshot")
		require.NoError(t, err)
		var s api.Snapshot
		require.NoError(t, json.Unmarshal(body, &s))
		require.Len(t, s.Listeners, 1)
		return s.Listeners[0]
	}
	nettest.Within(t, time.Minute, "the limits are known, and handshakes followed", func() bool {
		l := look()
		return l.Connector != nil && l.Connector.MaxConnections != nil && l.Clients != nil && l.Clients.ObservedSeconds > 1
	})
	require.Nil(t, look().Recent)

	lost := 0
	// Answers come every two seconds: none at the moment at which somebody gives up.
	const patience = 11500 * time.Millisecond
	for round := range 2 {
		began := time.Now()
		ended := make(chan demo.Outcomes, 1)
		go func() {
			o, err := demo.Burst(t.Context(), demo.BurstOptions{
				Address: tomcat.Address(), Path: "/hello?ms=2000", Clients: 60, ConnectTimeout: patience, RequestTimeout: patience,
			})
			assert.NoError(t, err)
			ended <- o
		}()
		// At its end the last ten seconds may have none who is lost: on a busy machine the last clients have been let in.
		var l api.Listener
		var o demo.Outcomes
		losing := false
		for over := false; !over; {
			if l = look(); l.Verdict.Status == "losing" && l.Verdict.Cause == "max_connections" {
				losing = true
				if window := l.Verdict.IntervalSeconds; window != nil {
					require.InDelta(t, 10, *window, 0)
				}
			}
			select {
			case o = <-ended:
				over = true
			case <-time.After(250 * time.Millisecond):
			}
		}
		require.True(t, losing, "round %d: %s", round, l.Verdict.Summary)
		t.Logf("round %d: %v", round, o)
		require.NotZero(t, o.Lost())
		lost += o.Lost()

		// What clients that have left repeat reaches a queue that dead connections still fill.
		left := time.Now()
		nettest.Within(t, time.Minute, "it is quiet", func() bool { return look().Recent != nil })
		t.Logf("quiet %v after the last client left", time.Since(left))
		for quiet := time.Now(); time.Since(quiet) < 25*time.Second; time.Sleep(250 * time.Millisecond) {
			l := look()
			require.NotEqual(t, "losing", l.Verdict.Status, "after %v: %s", time.Since(began), l.Verdict.Summary)
			require.NotNil(t, l.Recent)
			require.Equal(t, "max_connections", l.Recent.Cause)
			require.False(t, l.Recent.Ended.Before(began))
			require.NotZero(t, l.Recent.Packets)
		}
		nettest.Within(t, 3*time.Minute, "it is quiet for good", func() bool { l = look(); return l.Verdict.Status != "losing" && l.Recent != nil })
		t.Logf("%v after it began: %s, recent %+v", time.Since(began), l.Verdict.Status, *l.Recent)
		require.NotNil(t, l.Recent.ClientsTurnedAway)
	}

	// What became of those that have left is known when their kernels repeat their requests no
	// more, or when one of these is let in. Then every surface has the clients' own number.
	nettest.Within(t, 2*time.Minute, "it is known what became of all", func() bool { c := look().Clients; return c.Waiting+c.Settling+c.Stalling+c.Unreached == 0 })
	var list api.Incidents
	nettest.Within(t, time.Minute, "the incidents have all of them", func() bool {
		body, err := get(t.Context(), "http://"+agent.Address+"/api/v1/incidents")
		require.NoError(t, err)
		list = api.Incidents{}
		require.NoError(t, json.Unmarshal(body, &list))
		return !slices.ContainsFunc(list.Incidents, func(i api.IncidentSummary) bool { return i.ClientsUndecided > 0 })
	})
	incidents := uint64(0)
	for _, i := range list.Incidents {
		t.Log(i.Title)
		require.NotNil(t, i.ClientsTurnedAway)
		incidents += *i.ClientsTurnedAway
	}
	metrics, err := get(t.Context(), "http://"+agent.Address+"/metrics")
	require.NoError(t, err)
	require.InDelta(t, lost, incidents, 2, "incidents")
	require.InDelta(t, lost, *look().Recent.ClientsTurnedAway, 2, "recent")
	_, value, found := strings.Cut(string(metrics), "\ntcpdiag_listener_clients_turned_away_total{")
	require.True(t, found)
	var counted float64
	_, err = fmt.Sscan(strings.Fields(value)[1], &counted)
	require.NoError(t, err)
	require.InDelta(t, lost, counted, 2, "the counter")
}
