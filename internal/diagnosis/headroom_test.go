package diagnosis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestHeadroomListsWhatIsKnown(t *testing.T) {
	l := tomcat(200, 8192, 100).inService(150).queue(50, time.Second).do(files(500, 1000)).do(ports(14116))
	got := reading.Headroom(l.Listener, nil, 0, sysctls(), reading.DefaultThresholds())
	require.Equal(t, []model.Limit{
		{Name: "accept_queue", Used: 50, Max: 101, Ratio: 50. / 101},
		{Name: "max_connections", Used: 150, Max: 8192, Ratio: 150. / 8192},
		{Name: "max_threads", Used: 150, Max: 200, Ratio: .75},
		{Name: "open_files", Used: 500, Max: 1000, Ratio: .5},
		{Name: "ephemeral_ports", Used: 14116, Max: 28232, Ratio: .5},
	}, got)
}

func TestHeadroomLeavesOutWhatIsNot(t *testing.T) {
	names := func(l look, sysctl map[string]int) []string {
		out := []string{}
		for _, s := range reading.Headroom(l.Listener, nil, 0, sysctl, reading.DefaultThresholds()) {
			out = append(out, s.Name)
		}
		return out
	}
	require.Equal(t, []string{"accept_queue", "open_files"}, names(tomcat(1, 1, 1).unknownLimits(), sysctls()))
	require.Equal(t, []string{"accept_queue", "max_threads", "open_files"}, names(tomcat(200, -1, 1), sysctls()), "no limit on connections")
	require.Equal(t, []string{"accept_queue", "max_connections", "open_files"}, names(tomcat(200, 8, 1).do(virtual), sysctls()), "virtual threads")
	require.NotContains(t, names(tomcat(200, 8, 1).do(func(l *model.Listener) { l.Connector.TLS = true }), nil), "max_threads", "busy threads are not visible")
	require.Contains(t, names(tomcat(200, 8, 1).do(func(l *model.Listener) { l.Connector.TLS, l.Connector.BusyThreads = true, new(7) }), nil), "max_threads", "Actuator knows")
	require.Equal(t, []string{"accept_queue", "open_files"}, names(tomcat(200, 8, 1).inService(3).do(partly), sysctls()), "not all connections were counted")
	require.Contains(t, names(tomcat(200, 8, 1).do(partly).do(func(l *model.Listener) { l.Connector.BusyThreads = new(7) }), nil), "max_threads", "Actuator knows")
	require.NotContains(t, names(tomcat(200, 8, 1).do(ports(5)), nil), "ephemeral_ports", "the range is not readable")
	require.Empty(t, names(nothing(), sysctls()))
	require.Nil(t, reading.Headroom(nil, nil, 0, nil, reading.DefaultThresholds()))
}

// partly says that the walk of the socket table was cut short.
func partly(l *model.Listener) { l.Connections.Partial, l.Connections.Reset = true, nil }

// From a count that is too low to a whole one is no trend.
func TestHeadroomForecastFromAPartialCount(t *testing.T) {
	forecast := func(before look) *time.Duration {
		now := tomcat(200, 8192, 100).inService(150).idle(4000)
		l, ok := reading.LimitNamed(reading.Headroom(now.Listener, before.Listener, time.Second, sysctls(), reading.DefaultThresholds()), reading.StageMaxConnections)
		require.True(t, ok)
		return l.FullIn
	}
	require.NotNil(t, forecast(tomcat(200, 8192, 100).inService(10)))
	require.Nil(t, forecast(tomcat(200, 8192, 100).inService(10).do(partly)))
}

func TestHeadroomForecast(t *testing.T) {
	forecast := func(before, now look, elapsed time.Duration) *time.Duration {
		l, ok := reading.LimitNamed(reading.Headroom(now.Listener, before.Listener, elapsed, sysctls(), reading.DefaultThresholds()), reading.StageOpenFiles)
		require.True(t, ok)
		return l.FullIn
	}
	at := func(n int) look { return tomcat(200, 8192, 100).do(files(n, 1000)) }
	require.Equal(t, 10*time.Second, *forecast(at(400), at(600), 5*time.Second), "200 in 5 s, 400 to go")
	require.Nil(t, forecast(at(500), at(600), 5*time.Second), "what comes by chance can rise as much")
	require.Equal(t, 5*time.Second, *forecast(at(0), at(500), 5*time.Second), "from nothing")
	require.Nil(t, forecast(at(600), at(600), time.Second), "not filling")
	require.Nil(t, forecast(at(700), at(600), time.Second), "draining")
	require.Nil(t, forecast(at(900), at(1000), time.Second), "full already")
	require.Nil(t, forecast(at(400), at(600), 0), "one look twice")
	require.Nil(t, forecast(look{}, at(600), time.Second), "a single look")
	require.Nil(t, forecast(at(400).do(func(l *model.Listener) { l.Inode++ }), at(600), time.Second), "another listener")
	require.Nil(t, forecast(at(400).do(func(l *model.Listener) { l.Process.StartTime++ }), at(600), time.Second), "another process")
}
