package schedule

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// One of two sockets that share an address closes: the kernel resets who stands
// in its queue, and nobody else; or with tcp_migrate_req=1 it puts them into the
// other's.
func TestMemberOfAReusePortGroupCloses(t *testing.T) {
	const clients = 50
	for name, tt := range map[string]struct {
		migrate string
		sampled bool // a sample finds it, else the scan
	}{
		"found by a sample":    {"0", true},
		"found by a scan":      {"0", false},
		"migrated, by a scan":  {"1", false},
		"migrated, by samples": {"1", true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, nil)
			l.Sysctl(t, "net.ipv4.tcp_migrate_req", tt.migrate)
			stays := l.listen(t, nettest.ListenOptions{Backlog: 2 * clients, ReusePort: true})
			goes := l.listen(t, nettest.ListenOptions{Address: stays.Addr.String(), Backlog: 2 * clients, ReusePort: true})
			l.scan(t)
			var conns []net.Conn
			l.Do(func() { conns = nettest.Queue(t, stays.Addr, clients) })
			l.Sample()
			l.scan(t)
			goes.Close()
			if tt.sampled {
				l.Sample()
				l.Sample()
			}
			got := only(t, l.scan(t))

			waiting := stillWaiting(t, conns)
			reset := clients - len(waiting)
			t.Logf("%d of %d clients were reset", reset, clients)
			require.Equal(t, tt.migrate == "0", reset > 0, "a group's clients fall to both")
			require.EqualValues(t, reset, got.Totals.QueueResets)
			require.EqualValues(t, reset, got.Losses.QueueResets)
			require.Equal(t, 1, got.Members)
			require.Equal(t, clients-reset, got.AcceptQueue.Length, "the others still wait")
			if reset > 0 {
				require.Equal(t, model.StatusLosing, got.Verdict.Status)
				require.Equal(t, model.CauseListenerClosed, got.Verdict.Cause)
				require.Contains(t, got.Verdict.Summary, "SO_REUSEPORT")
			}

			// Then the other one: nobody is counted twice.
			stays.Close()
			l.Sample()
			snap := l.scan(t)
			require.Empty(t, stillWaiting(t, waiting))
			require.Len(t, snap.Retired, 1)
			require.EqualValues(t, clients, snap.Retired[0].Totals.QueueResets)
		})
	}
}

// stillWaiting are the clients whose connection was not reset. It asks the
// socket and no deadline, which may pass before the socket is asked.
func stillWaiting(t *testing.T, conns []net.Conn) (waiting []net.Conn) {
	t.Helper()
	for _, c := range conns {
		raw, err := c.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		var seen error
		require.NoError(t, raw.Read(func(fd uintptr) bool {
			_, _, seen = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_DONTWAIT)
			return true
		}))
		if errors.Is(seen, unix.EAGAIN) {
			waiting = append(waiting, c)
			continue
		}
		require.ErrorIs(t, seen, unix.ECONNRESET)
	}
	return waiting
}

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
	s, err := New(Sources{Sources: watchlist.Sources{Mount: "/proc", Proc: proc, Owners: owner.New(proc), Discovery: discovery.NewDiscoverer(proc)}}, opt)
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
