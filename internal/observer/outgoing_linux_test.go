package observer

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
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
	require.Equal(t, &model.Destination{Address: server.Addr, Ports: 45}, got.Process.Busiest)
	var limit *model.Limit
	for i := range got.Limits {
		if got.Limits[i].Name == "ephemeral_ports" {
			limit = &got.Limits[i]
		}
	}
	require.NotNil(t, limit)
	require.Equal(t, 50, limit.Max)
	require.Equal(t, 45, limit.Used)
}

// Clients that a server accepted take none of its ephemeral ports.
func TestAcceptedConnectionsAreNotOutgoing(t *testing.T) {
	l := newLab(t, nil)
	l.Sysctl(t, "net.ipv4.ip_local_port_range", "40000 40099")
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 100})
	l.queue(t, server.Addr, 30)
	server.Accept(t, 20)
	require.Nil(t, only(t, l.scan(t)).Process.Busiest, "61 sockets, but 30 outgoing connections only")
	require.Zero(t, l.spaces[0].outgoing.at, "not looked for")
}

// Nor do those of a server whose port lies among them, watched or not.
func TestServerOnAnEphemeralPort(t *testing.T) {
	l := newLab(t, func(o *Options) { o.All, o.Ports = false, []uint16{8080} })
	l.Sysctl(t, "net.ipv4.ip_local_port_range", "40000 40049")
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 100})
	busy := l.listen(t, nettest.ListenOptions{Address: "127.0.0.2:40049", Backlog: 100})
	l.queue(t, server.Addr, 5)
	server.Accept(t, 5)
	l.scan(t)
	l.queue(t, busy.Addr, 20)
	busy.Accept(t, 20)
	var ours []*candidate
	for _, listener := range []*nettest.Listener{server, busy} {
		ours = append(ours, &candidate{id: model.ListenerID{Address: listener.Addr}, space: l.spaces[0]})
	}
	require.Len(t, l.spaces[0].outgoingPorts(ours), 49)
	require.Len(t, l.spaces[0].outgoingPorts(nil), 50)
	_, most := l.spaces[0].busiestPeer(ours)
	require.Equal(t, 20, most.ports, "the clients' ends only")
}

func TestDearLookAtOutgoingRestsLonger(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	tests := map[string]struct {
		cost, age time.Duration
		want      bool
	}{
		"never looked":       {0, now.Sub(time.Time{}), true},
		"cheap and fresh":    {time.Millisecond, 4 * time.Second, false},
		"cheap and old":      {time.Millisecond, 5 * time.Second, true},
		"dear and as old":    {100 * time.Millisecond, 5 * time.Second, false},
		"dear and older yet": {100 * time.Millisecond, 40 * time.Second, true},
	}
	for name, tt := range tests {
		o := outgoing{at: now.Add(-tt.age), cost: tt.cost}
		require.Equal(t, tt.want, o.due(now), name)
	}
}

// The first scan of an agent leaves it out; a single look by hand does not.
func TestStartDoesNotWaitForOutgoing(t *testing.T) {
	l := newLab(t, nil)
	l.Sysctl(t, "net.ipv4.ip_local_port_range", "40000 40049")
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 100})
	l.queue(t, server.Addr, 45)
	l.looping = true
	require.Nil(t, only(t, l.scan(t)).Process.Busiest)
	require.NotNil(t, only(t, l.scan(t)).Process.Busiest)
}

func TestRoomForOutgoingConnections(t *testing.T) {
	own, other := &candidate{owner: &owner.Process{PID: 1}}, &candidate{owner: &owner.Process{PID: 2}}
	accepted := func(n int) *gathered { return &gathered{connections: model.Connections{Accepted: n}} }
	sc := &scan{
		kept:     []*candidate{own, other, {}},
		gathered: map[*candidate]*gathered{own: accepted(90), other: accepted(5)},
	}
	p := &model.Process{}
	p.PID = 1
	require.Equal(t, math.MaxInt, sc.room(p), "not known: must be looked at")
	p.OpenFiles = new(100)
	require.Equal(t, 10, sc.room(p))
}
