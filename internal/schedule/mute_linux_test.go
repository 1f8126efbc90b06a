package schedule

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// mute makes the namespace's dumps and samples fail until it is undone.
func (n *node) mute(t *testing.T, p *pod) (undo func()) {
	t.Helper()
	n.faults.listen[uint64(p.id)] = syscall.EIO
	return func() { delete(n.faults.listen, uint64(p.id)) }
}

// A namespace that does not answer is neither down nor closed: nobody was reset
// there, what was lost so far is kept, and all continues when it answers again.
func TestNamespaceThatDoesNotTellItsListeners(t *testing.T) {
	n := newNode(t, expectingRarePort)
	p, other := newPod(t), newPod(t)
	l := p.listenRarely(t)
	other.listenRarely(t)
	n.scan(t)
	p.queue(t, l, 6)
	p.overflow(t, l, 10)
	n.Sample()
	before := p.of(n.scan(t))
	require.EqualValues(t, 10, before.Losses.DroppedPackets)
	require.EqualValues(t, 10, before.Recent.Packets)

	undo := n.mute(t, p)
	p.overflow(t, l, 7)
	for range 2 {
		n.now = n.now.Add(2 * losses.Retention) // of what has closed
		n.Sample()
		snap := n.scan(t)
		require.Nil(t, p.target(snap), "neither up nor down")
		require.Nil(t, p.of(snap))
		require.True(t, other.target(snap).Up)
		require.NotNil(t, other.of(snap))
		require.False(t, snap.Self.SourceUp["sock_diag"])
		for _, ns := range snap.NetNS {
			require.NotEqual(t, uint64(p.id), ns.ID, "its counters are old")
		}
		var told []string
		for _, u := range snap.Unavailable {
			told = append(told, u.What)
		}
		require.Contains(t, told, fmt.Sprintf("listeners in network namespace %d", p.id))
		require.Equal(t, []model.Totals{before.Totals}, retained(snap, before.ID), "its counters go on")
	}
	undo()

	n.Sample()
	snap := n.scan(t)
	require.True(t, p.target(snap).Up)
	got := p.of(snap)
	require.Empty(t, retained(snap, got.ID))
	require.Equal(t, before.Totals.Fill.Count+1, got.Totals.Fill.Count, "it was watched all the time")
	require.Zero(t, got.Totals.QueueResets)
	require.EqualValues(t, 17, got.Losses.DroppedPackets+before.Losses.DroppedPackets)
	require.Equal(t, before.Inode, got.Inode)
}

// A listener that closes meanwhile is missed when the namespace answers again.
func TestListenerThatClosesInAMuteNamespace(t *testing.T) {
	n := newNode(t, func(o *Options) { expectingRarePort(o); o.MaxListeners = 1 })
	p := newPod(t)
	l := p.listenRarely(t)
	p.queue(t, l, 6)
	id := p.of(n.scan(t)).ID
	undo := n.mute(t, p)
	l.Close()
	n.scan(t)
	undo()
	snap := n.scan(t)
	require.False(t, p.target(snap).Up)
	require.Equal(t, model.StatusDown, p.of(snap).Verdict.Status)
	require.Equal(t, []uint64{6}, resets(snap.Retired, id))
}

func (p *pod) queue(t *testing.T, l *nettest.Listener, n int) {
	t.Helper()
	p.Do(func() { nettest.Queue(t, atHome(l), n) })
}

func (p *pod) overflow(t *testing.T, l *nettest.Listener, n int) {
	t.Helper()
	p.Do(func() { nettest.Overflow(t, atHome(l), n) })
}

// atHome is where a wildcard listener is found from inside.
func atHome(l *nettest.Listener) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), l.Addr.Port())
}

func retained(s *model.Snapshot, id model.ListenerID) (out []model.Totals) {
	for _, g := range s.Retired {
		if g.ID == id {
			out = append(out, g.Totals)
		}
	}
	return out
}

// Of three idle connections one has had a request and its response; the clients
// of the others have sent nothing yet.
func TestSilentClients(t *testing.T) {
	l := newLab(t, nil)
	server := l.listen(t, nettest.ListenOptions{Backlog: 5})
	var clients, accepted []net.Conn
	l.Do(func() {
		clients = nettest.Queue(t, server.Addr, 3)
		accepted = server.Accept(t, 3)
	})
	port := clients[0].LocalAddr().(*net.TCPAddr).Port
	for _, c := range accepted {
		if c.RemoteAddr().(*net.TCPAddr).Port != port {
			continue
		}
		answer(t, clients[0], c)
	}
	require.Eventually(t, func() bool {
		c := only(t, l.scan(t)).Connections
		return c.Phases[model.Idle] == 3 && c.Silent == 2
	}, time.Minute, 20*time.Millisecond)
}

// answer sends a request and its response.
func answer(t *testing.T, client, server net.Conn) {
	t.Helper()
	buf := make([]byte, 8)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		_, err := way[0].Write(buf)
		require.NoError(t, err)
		_, err = way[1].Read(buf)
		require.NoError(t, err)
	}
}
