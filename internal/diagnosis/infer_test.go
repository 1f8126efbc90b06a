package diagnosis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What is seen in force beats what is configured; nothing else does.
func TestInfer(t *testing.T) {
	code := func() *model.Listener { return tomcat(30, 8192, 100).pool(7).inService(7).waiting(5).Listener }
	got, _ := reading.Infer(code(), code(), 0)
	require.Equal(t, 7, got.MaxThreads.Value)
	require.Equal(t, model.SourceInferred, got.MaxThreads.Kind)
	require.Contains(t, got.MaxThreads.Note, "configured is 30")
	v := Judge(symptoms.Input{Now: with(code(), got), Before: with(code(), got)}, reading.DefaultThresholds())
	require.Equal(t, model.CauseMaxThreads, v.Cause)

	nowhere := func() *model.Listener {
		l := code()
		l.Connector.MaxThreads = nil
		return l
	}
	got, before := reading.Infer(nowhere(), nowhere(), 0)
	require.Equal(t, 7, got.MaxThreads.Value, "it is set nowhere that can be read")
	v = Judge(symptoms.Input{Now: with(nowhere(), got), Before: before}, reading.DefaultThresholds())
	require.Equal(t, model.CauseMaxThreads, v.Cause)
	other := nowhere()
	other.Connector.Server = "jvm"
	got, _ = reading.Infer(nowhere(), other, 0)
	require.Nil(t, got.MaxThreads, "another server's threads")

	for name, pair := range map[string][2]*model.Listener{
		"no reading before":  {nil, code()},
		"it grows":           {tomcat(30, 8192, 100).pool(6).inService(6).waiting(5).Listener, code()},
		"a thread is free":   {code(), tomcat(30, 8192, 100).pool(7).inService(6).waiting(5).Listener},
		"nothing waits":      {code(), tomcat(30, 8192, 100).pool(7).inService(7).Listener},
		"as it is set":       {tomcat(7, 8192, 100).pool(7).inService(7).waiting(5).Listener, tomcat(7, 8192, 100).pool(7).inService(7).waiting(5).Listener},
		"pool not countable": {tomcat(30, 8192, 100).inService(7).waiting(5).Listener, tomcat(30, 8192, 100).inService(7).waiting(5).Listener},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := reading.Infer(pair[0], pair[1], 0)
			require.Equal(t, pair[1].Connector.MaxThreads, got.MaxThreads)
		})
	}

	over := tomcat(200, 10, 100).inService(17).Listener
	got, _ = reading.Infer(nil, over, 0)
	require.True(t, got.MaxConnections.Uncertain)
	require.False(t, over.Connector.MaxConnections.Uncertain, "the reading is not changed")
}

func with(l *model.Listener, c *model.Connector) *model.Listener {
	out := *l
	out.Connector = c
	return &out
}

// TestLimitAtTheLatch: with the acceptor at the latch what is held is the limit, where
// the configuration has none for certain; a certain one stands unless all slots
// were counted.
func TestLimitAtTheLatch(t *testing.T) {
	setting := func(n int, uncertain bool) *model.Setting[int] {
		return &model.Setting[int]{Value: n, Kind: model.SourceDefault, Source: "default", Uncertain: uncertain}
	}
	for _, tt := range []struct {
		name       string
		configured *model.Setting[int]
		reset      *int
		partial    bool
		want       int // 0: as it was
		uncertain  bool
	}{
		{"unknown; clients that reset may hold more", nil, nil, false, 60, true},
		{"unknown, and all slots counted", nil, new(5), false, 65, false},
		{"unknown, counted in part", nil, nil, true, 0, false},
		{"a default that may be overruled", setting(8192, true), nil, false, 60, true},
		{"certain; clients that reset may hold the rest", setting(100, false), nil, false, 0, false},
		{"certain, and all slots counted", setting(8192, false), new(5), false, 65, false},
		{"certain and reached", setting(60, false), nil, false, 0, false},
		{"no limit", setting(-1, true), nil, false, 60, true},
	} {
		l := &model.Listener{
			Connector:   &model.Connector{MaxConnections: tt.configured},
			Connections: &model.Connections{Accepted: 60, Reset: tt.reset, Partial: tt.partial},
		}
		got, _ := reading.Infer(nil, l, l.Connections.SlotsInUse())
		if tt.want == 0 {
			require.Equal(t, l.Connector, got, tt.name)
			continue
		}
		require.Equal(t, tt.want, got.MaxConnections.Value, tt.name)
		require.Equal(t, model.SourceInferred, got.MaxConnections.Kind, tt.name)
		require.Equal(t, tt.uncertain, got.MaxConnections.Uncertain, tt.name)
		require.Same(t, tt.configured, l.Connector.MaxConnections, tt.name+": what was handed on is not changed")
	}
	none := &model.Listener{Connections: &model.Connections{Accepted: 60}}
	got, _ := reading.Infer(nil, none, 60)
	require.Nil(t, got)
}

// On NIO2 who stands in the accept queue waits for a thread as well.
func TestInferThePoolOfNIO2(t *testing.T) {
	seen := func(protocol string) *model.Listener {
		l := tomcat(6, 60, 100).pool(6).inService(6).queue(22, 4*time.Second).Listener
		l.Connector.Protocol, l.Connector.MaxThreads = protocol, nil
		return l
	}
	c, _ := reading.Infer(seen("http-nio2"), seen("http-nio2"), 0)
	require.NotNil(t, c.MaxThreads)
	require.Equal(t, 6, c.MaxThreads.Value)
	c, _ = reading.Infer(seen("http-nio"), seen("http-nio"), 0)
	require.Nil(t, c.MaxThreads, "the acceptor is another thread")
}

// Configured are 6 threads, but the pool has 40: somebody raised it over JMX, or code did.
func TestAPoolAboveItsConfiguredSize(t *testing.T) {
	seen := func(pool, busy, waiting int) *model.Listener {
		return tomcat(6, 200, 100).pool(pool).inService(busy).waiting(waiting).Listener
	}
	c, _ := reading.Infer(seen(40, 40, 20), seen(40, 40, 20), 0)
	require.Equal(t, 40, c.MaxThreads.Value)
	require.Equal(t, model.SourceInferred, c.MaxThreads.Kind)

	now := seen(30, 30, 0)
	now.Connector, _ = reading.Infer(seen(28, 28, 0), now, 0)
	require.True(t, now.Connector.MaxThreads.Uncertain)
	require.Contains(t, now.Connector.MaxThreads.Note, "the pool has 30 threads")
	v := Judge(symptoms.Input{Now: now, Before: seen(28, 28, 0), Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
	require.Equal(t, model.StatusOK, v.Status)
	require.NotContains(t, v.Summary, "of 6 threads")
	for _, l := range reading.Headroom(now, nil, 0, sysctls(), reading.DefaultThresholds()) {
		require.NotEqual(t, "max_threads", l.Name)
	}

	c, _ = reading.Infer(seen(8, 6, 0), seen(8, 6, 0), 0)
	require.False(t, c.MaxThreads.Uncertain, "two may be a Tomcat's own")
}
