package diagnosis

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func from(n int) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Connections.TopPeer = &model.PeerCount{Address: netip.MustParseAddr("10.0.0.9"), Connections: n}
	}
}

// A proxy whose pool uses the connections up is named; where nothing is short,
// nothing is said of it.
func TestOnePeer(t *testing.T) {
	said := func(l look) string {
		v := Judge(symptoms.Input{Now: l.Listener, Sysctl: sysctls()}, reading.DefaultThresholds())
		for _, f := range v.Findings {
			if f.Code == "one_peer" {
				return f.Evidence
			}
		}
		return ""
	}
	require.Equal(t, "All 50 connections come from 10.0.0.9: one client, or a proxy in front of them.",
		said(tomcat(20, 50, 10).idle(50).queue(4, time.Second).do(from(50))))
	require.Equal(t, "40 of the 50 connections come from 10.0.0.9 (80 %): one client, or a proxy in front of them.",
		said(tomcat(20, 50, 10).idle(50).queue(4, time.Second).do(from(40))))
	require.Empty(t, said(tomcat(20, 50, 10).idle(50).queue(4, time.Second)), "many clients")
	require.Empty(t, said(tomcat(20, 500, 10).idle(50).do(from(50))), "room for ten times as many")
	require.Empty(t, said(tomcat(20, 2, 10).idle(2).queue(4, time.Second).do(from(2))), "two clients")
}

// A client in the accept queue is not passed over because no limit is known.
func TestSomebodyWaitsAtLimitsUnknown(t *testing.T) {
	l := tomcat(7, 6, 15).inService(6).queue(11, 5*time.Second)
	l.Connector.MaxConnections, l.Connector.MaxThreads = nil, nil
	v := Judge(symptoms.Input{Now: l.Listener, Before: l.Listener, Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
	require.Contains(t, v.Summary, "11 connections wait in the accept queue (capacity 16), and why is unknown while maxConnections is not known")
}

// A probe that connected and closed has no thread.
func TestNeverMoreThreadsThanThereAre(t *testing.T) {
	l := tomcat(6, 60, 100).pool(6).inService(6).with(model.ClientClosed, 1)
	_, known := l.BusyThreads()
	require.Equal(t, model.BusyBeyondThreads, known)
	l.Connections.ClosedIdle = 1
	busy, known := l.BusyThreads()
	require.Equal(t, model.BusyIsKnown, known)
	require.Equal(t, 6, busy)
}
