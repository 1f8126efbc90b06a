package sampler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/nettest"
)

// A server that calls itself: every call takes an ephemeral port towards its
// own address.
func TestEphemeralPortsRunningOut(t *testing.T) {
	l := newLab(t, nil)
	l.Sysctl(t, "net.ipv4.ip_local_port_range", "40000 40049")
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 100})
	l.scan(t)
	require.Nil(t, only(t, l.scan(t)).Process.Busiest, "too few sockets to walk for")
	l.queue(t, server.Addr, 45)
	server.Accept(t, 45)
	got := only(t, l.scan(t))
	require.Equal(t, &backlog.Destination{Address: server.Addr, Ports: 45}, got.Process.Busiest)
	var limit *backlog.Limit
	for i := range got.Limits {
		if got.Limits[i].Name == "ephemeral_ports" {
			limit = &got.Limits[i]
		}
	}
	require.NotNil(t, limit)
	require.Equal(t, 50, limit.Max)
	require.Equal(t, 45, limit.Used)
}
