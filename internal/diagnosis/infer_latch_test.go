package diagnosis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// 8,192 are configured, code says 17: the acceptor shows it.
func TestLimitInForceIsInferredFromTheAcceptor(t *testing.T) {
	seen := func(n int) *model.Listener {
		l := tomcat(200, 8192, 9).pool(7).inService(7).waiting(n-7).queue(10, time.Second).lost(maxConns, syn, 40)
		l.Losses.By[0].Evidence, l.Connections.Reset = model.EvidenceAcceptor, new(0)
		return l.Listener
	}
	inForce := func(before, now *model.Listener) int {
		c, _ := reading.Infer(before, now, 0)
		return c.MaxConnections.Value
	}
	now := seen(17)
	c, was := reading.Infer(seen(17), now, 0)
	require.Equal(t, c.MaxConnections, was.Connector.MaxConnections, "the reading before is compared by the same limit")
	require.Equal(t, 17, c.MaxConnections.Value)
	require.Equal(t, model.SourceInferred, c.MaxConnections.Kind)
	require.Contains(t, c.MaxConnections.Note, "configured is 8,192")
	require.Equal(t, 8192, now.Connector.MaxConnections.Value, "what was handed on is not changed")

	require.Equal(t, 8192, inForce(seen(16), now), "it still accepts")
	require.Equal(t, 8192, inForce(nil, now))
	other := seen(17)
	other.Losses.By[0].Evidence = model.EvidencePhases
	require.Equal(t, 8192, inForce(seen(17), other), "nobody has seen the acceptor")
	reset := seen(17)
	reset.Connections.Reset = new(3)
	require.Equal(t, 8192, inForce(seen(17), reset), "slots of clients that reset")
	uncounted := seen(17)
	uncounted.Connections.Reset = nil
	require.Equal(t, 8192, inForce(uncounted, uncounted), "nobody has counted those slots")
	uncounted.Connector.MaxConnections.Uncertain = true
	c, _ = reading.Infer(uncounted, uncounted, 0)
	require.Equal(t, 17, c.MaxConnections.Value)
	require.True(t, c.MaxConnections.Uncertain)
	require.Contains(t, c.MaxConnections.Note, "uncertain: it is more")
}

// A queue that stands in front of a server with room is said to, whatever its
// length.
func TestAQueueThatStandsIsSaid(t *testing.T) {
	l := tomcat(200, 8192, 100).pool(15).inService(15).queue(45, 5*time.Second)
	l.Connections.Reset = new(0)
	v := Judge(symptoms.Input{Now: l.Listener, Before: l.Listener, Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
	require.Equal(t, model.StatusWarning, v.Status)
	require.Empty(t, v.Cause)
	require.Contains(t, v.Summary, "45 connections wait in the accept queue")
	codes := []string{}
	for _, f := range v.Findings {
		codes = append(codes, f.Code)
	}
	require.Equal(t, []string{"queue_stands"}, codes)

	l.AcceptQueue.OldestWait = new(500 * time.Millisecond)
	v = Judge(symptoms.Input{Now: l.Listener, Before: l.Listener, Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
	require.Equal(t, model.StatusOK, v.Status, "it may be about to be taken")
}
