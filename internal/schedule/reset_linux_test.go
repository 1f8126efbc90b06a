package schedule

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// Two listeners of one process have room for four each, and the process has
// four descriptors without a socket: they are not counted for both. (In the
// test's own namespace: it is its own process that is read.)
func TestForgottenSocketsAreCountedOnce(t *testing.T) {
	const most, forgotten = 10, 4
	proc := hostfs.Real(t)
	opt := Defaults()
	opt.Limits = watchlist.Overrides{MaxConnections: watchlist.ByHand(new(most), "flag --max-connections")}
	var live []net.Conn
	for range 2 {
		server := nettest.Listen(t, nettest.ListenOptions{Backlog: 20})
		opt.Ports = append(opt.Ports, server.Addr.Port())
		live = append(live, nettest.Queue(t, server.Addr, most-forgotten)...)
		live = append(live, server.Accept(t, most-forgotten)...)
		live = append(live, nettest.Queue(t, server.Addr, 1)...)
	}
	other := nettest.Listen(t, nettest.ListenOptions{Backlog: 20})
	for _, client := range nettest.Queue(t, other.Addr, forgotten) {
		live = append(live, other.Accept(t, 1)...) // keeps its descriptor
		require.NoError(t, client.(*net.TCPConn).SetLinger(0))
		require.NoError(t, client.Close())
	}
	s, err := New(Sources{Sources: watchlist.Sources{Mount: "/proc", Proc: proc, Owners: owner.New(proc), Tomcat: discovery.NewDiscoverer(proc)}}, opt)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.Scan(context.Background()))
	require.NoError(t, s.Scan(context.Background()))

	snap := s.Snapshot()
	require.Len(t, snap.Listeners, 2)
	for i := range snap.Listeners {
		c := snap.Listeners[i].Connections
		require.Equal(t, most-forgotten, c.Accepted)
		require.Equal(t, new(forgotten/2), c.Reset)
	}
	require.NotEmpty(t, live)
}
