package schedule

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// pairOf connects a client and accepts it.
func (l *lab) pairOf(t *testing.T, server *nettest.Listener) (client, accepted *net.TCPConn) {
	t.Helper()
	l.Do(func() {
		client = nettest.Queue(t, server.Addr, 1)[0].(*net.TCPConn)
		accepted = server.Accept(t, 1)[0].(*net.TCPConn)
	})
	return client, accepted
}

func say(t *testing.T, from, to *net.TCPConn) {
	t.Helper()
	_, err := from.Write([]byte("x"))
	require.NoError(t, err)
	_, err = to.Read(make([]byte, 9))
	require.NoError(t, err)
}

// resets makes EstabResets move by n: clients of another port reset.
func (l *lab) resets(t *testing.T, server *nettest.Listener, n int) {
	t.Helper()
	for range n {
		client, _ := l.pairOf(t, server)
		require.NoError(t, client.SetLinger(0))
		require.NoError(t, client.Close())
	}
}

// A client that closes has abandoned something only if it was owed an answer.
func TestOnlyRequestsAreAbandoned(t *testing.T) {
	const apart = 20 * time.Millisecond // some jiffies
	served := func(client, accepted *net.TCPConn) {
		say(t, client, accepted)
		time.Sleep(apart)
		say(t, accepted, client)
	}
	tests := map[string]struct {
		before func(client, accepted *net.TCPConn)
		want   uint64
	}{
		"nobody has read the request":           {func(c, _ *net.TCPConn) { _, _ = c.Write([]byte("GET")) }, 1},
		"in service":                            {func(c, a *net.TCPConn) { say(t, c, a) }, 1},
		"in service, a second request":          {func(c, a *net.TCPConn) { served(c, a); time.Sleep(apart); say(t, c, a) }, 1},
		"keep-alive, idle":                      {served, 0},
		"keep-alive, idle, answered in a jiffy": {func(c, a *net.TCPConn) { say(t, c, a); say(t, a, c) }, 0},
		"a probe that sends nothing":            {func(_, _ *net.TCPConn) {}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, nil)
			server := l.listen(t, nettest.ListenOptions{Backlog: 50})
			other := l.listen(t, nettest.ListenOptions{Backlog: 50})
			l.Scheduler = l.sampler(t, watching(server.Addr.Port()))
			client, accepted := l.pairOf(t, server)
			tt.before(client, accepted)
			require.NoError(t, client.Close())
			l.scan(t)
			require.Equal(t, 1, only(t, l.scan(t)).Connections.States["CLOSE_WAIT"])
			require.NoError(t, accepted.Close())
			l.resets(t, other, 1)
			snap := l.scan(t)
			require.NotZero(t, snap.NetNS[0].Delta["EstabResets"])
			require.Equal(t, tt.want, only(t, snap).Losses.AbandonedRequests)
		})
	}
}

// Who stands in the queue of a listener that closes is reset there, and has
// abandoned nothing, nor has anybody else by that. (The clients are elsewhere:
// their own ends are reset, too.)
func TestQueueResetsAreNotAbandonedRequests(t *testing.T) {
	l := newLab(t, nil)
	clients := nettest.Namespace(t)
	address, _ := nettest.Veth(t, l.NS, clients)
	at := netip.AddrPortFrom(address, 0).String()
	halfCloser := l.listen(t, nettest.ListenOptions{Address: at, Backlog: 50})
	closes := l.listen(t, nettest.ListenOptions{Address: at, Backlog: 50})
	var client, accepted *net.TCPConn
	clients.Do(func() {
		client = nettest.Queue(t, halfCloser.Addr, 1)[0].(*net.TCPConn)
		nettest.Queue(t, closes.Addr, 10)
	})
	accepted = halfCloser.Accept(t, 1)[0].(*net.TCPConn)
	say(t, client, accepted)
	require.NoError(t, client.CloseWrite())
	l.scan(t)
	l.Sample()
	closes.Close()
	l.Sample()
	_, err := accepted.Write([]byte("answer"))
	require.NoError(t, err)
	require.NoError(t, accepted.Close())
	snap := l.scan(t)
	require.EqualValues(t, 10, snap.NetNS[0].Delta["EstabResets"])
	require.Zero(t, only(t, snap).Losses.AbandonedRequests)
}

// Clients of two listeners disappear while half as many resets are counted: none
// counts twice, and neither listener takes them all.
func TestNoResetCountsForTwoListeners(t *testing.T) {
	const n = 10
	l := newLab(t, nil)
	var ends []*net.TCPConn
	for range 2 {
		server := l.listen(t, nettest.ListenOptions{Backlog: 50})
		for range n {
			client, accepted := l.pairOf(t, server)
			say(t, client, accepted)
			require.NoError(t, client.CloseWrite())
			ends = append(ends, accepted)
		}
	}
	l.scan(t)
	for i, c := range ends {
		if i >= n { // these find that their client has closed
			require.NoError(t, c.SetLinger(0))
		}
		require.NoError(t, c.Close())
	}
	snap := l.scan(t)
	require.EqualValues(t, n, snap.NetNS[0].Delta["EstabResets"])
	require.Len(t, snap.Listeners, 2)
	for i := range snap.Listeners {
		require.EqualValues(t, n/2, snap.Listeners[i].Losses.AbandonedRequests)
	}
}
