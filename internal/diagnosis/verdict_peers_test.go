package diagnosis

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func from(n int) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Connections.TopPeer = &model.PeerShare{Address: netip.MustParseAddr("10.0.0.9"), Connections: n}
	}
}

// A proxy whose pool uses the connections up is named; where nothing is short,
// nothing is said of it.
func TestOnePeer(t *testing.T) {
	said := func(l look) string {
		v := Judge(Evidence{Now: l.Listener, Sysctl: sysctls()}, DefaultThresholds())
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
