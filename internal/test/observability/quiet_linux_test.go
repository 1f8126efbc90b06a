package observability

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// The same burst twice with half a minute between, on a real Tomcat. Between them the
// listener is quiet, says what was lost, and is losing no more: not for what the clients
// of the first burst repeat, which have left.
func TestLongTwoBursts(t *testing.T) {
	a := artifacts(t)
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
	within(t, time.Minute, "the limits are known", func() bool { c := look().Connector; return c != nil && c.MaxConnections != nil })
	require.Nil(t, look().Recent)

	for round := range 2 {
		began := time.Now()
		o, err := demo.Burst(t.Context(), demo.BurstOptions{
			Address: tomcat.Address(), Path: "/hello?ms=2000", Clients: 60, ConnectTimeout: 12 * time.Second, RequestTimeout: 12 * time.Second,
		})
		require.NoError(t, err)
		t.Logf("%v", o)
		require.NotZero(t, o.Lost())
		l := look()
		require.Equal(t, "losing", l.Verdict.Status, "round %d", round)
		require.Equal(t, "max_connections", l.Verdict.Cause)
		require.InDelta(t, 10, *l.Verdict.IntervalSeconds, 0)

		// What clients that have left repeat reaches a queue that dead connections still fill.
		left := time.Now()
		within(t, time.Minute, "it is quiet", func() bool { return look().Recent != nil })
		t.Logf("quiet %v after the last client left", time.Since(left))
		for quiet := time.Now(); time.Since(quiet) < 25*time.Second; time.Sleep(250 * time.Millisecond) {
			l := look()
			require.NotEqual(t, "losing", l.Verdict.Status, "after %v: %s", time.Since(began), l.Verdict.Summary)
			require.NotNil(t, l.Recent)
			require.Equal(t, "max_connections", l.Recent.Cause)
			require.False(t, l.Recent.Ended.Before(began))
			require.NotZero(t, l.Recent.Packets)
		}
		within(t, 3*time.Minute, "it is quiet for good", func() bool { l = look(); return l.Verdict.Status != "losing" && l.Recent != nil })
		t.Logf("%v after it began: %s, recent %+v", time.Since(began), l.Verdict.Status, *l.Recent)
		require.NotNil(t, l.Recent.ClientsTurnedAway)
	}
}
