package downstream_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/downstream"
)

func peer(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), 5432)
}

// to are n connections to a peer in one state.
func to(p netip.AddrPort, n int, f downstream.Flight, age time.Duration) (out []downstream.Connection) {
	for i := range n {
		out = append(out, downstream.Connection{Cookie: uint64(p.Addr().As4()[3])<<16 + uint64(i) + 1, Inode: 1, Remote: p, Flight: f, Age: age})
	}
	return out
}

func join(lists ...[]downstream.Connection) (out []downstream.Connection) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func start() time.Time { return time.Unix(1_700_000_000, 0) }

func TestPeersAreCounted(t *testing.T) {
	var m downstream.Memory
	at := start()
	d := m.Next(at, join(
		to(peer(1), 3, downstream.InFlight, 2*time.Second),
		to(peer(2), 5, downstream.Idle, time.Second),
	), nil)
	require.Len(t, d.Peers, 2)
	first := d.Peers[0]
	require.Equal(t, peer(1), first.Address, "what is waited for comes first")
	require.Equal(t, 3, first.InFlight)
	require.Equal(t, 2*time.Second, first.Oldest)
	require.Equal(t, 2*time.Second, first.Mean)
	require.Nil(t, first.AllInFlight, "one reading is no share of a minute")
	require.Nil(t, first.PerSecond)
	require.Nil(t, first.Background)
	require.Zero(t, d.Peers[1].InFlight)
	require.Nil(t, d.Others)

	d = m.Next(at.Add(time.Second), join(
		to(peer(1), 3, downstream.InFlight, 500*time.Millisecond),
		to(peer(2), 5, downstream.Idle, 2*time.Second),
	), nil)
	require.InDelta(t, 1, *d.Peers[0].AllInFlight, 0)
	require.InDelta(t, 3, *d.Peers[0].PerSecond, 0, "each was begun in that second")
	require.InDelta(t, 0, *d.Peers[1].PerSecond, 0)
}

// A tie is decided by the reading before, if nothing was sent since.
func TestATieStaysWhatItWas(t *testing.T) {
	var m downstream.Memory
	at := start()
	m.Next(at, to(peer(1), 2, downstream.InFlight, 0), nil)
	d := m.Next(at.Add(time.Second), to(peer(1), 3, downstream.Unknown, time.Second), nil)
	require.Equal(t, 2, d.Peers[0].InFlight)
	require.Equal(t, 1, d.Peers[0].Unknown, "the third was not there before")
	d = m.Next(at.Add(2*time.Second), to(peer(1), 3, downstream.Unknown, 500*time.Millisecond), nil)
	require.Zero(t, d.Peers[0].InFlight)
	require.Equal(t, 3, d.Peers[0].Unknown, "another request, which may be answered or not")
}

func TestConnectsThatHang(t *testing.T) {
	var m downstream.Memory
	at := start()
	list := to(peer(1), 2, downstream.Connecting, 1_000_000*time.Hour)
	list[0].Retransmits = 2
	d := m.Next(at, list, nil)
	require.Equal(t, 2, d.Peers[0].Connecting)
	require.Equal(t, 2*time.Second, d.Peers[0].OldestConnect, "each try takes a second at least")
	require.Zero(t, d.Peers[0].Oldest)
	d = m.Next(at.Add(9*time.Second), list, nil)
	require.Equal(t, 9*time.Second, d.Peers[0].OldestConnect, "it has been seen for so long")
	require.Equal(t, 2, d.Peers[0].Waiting())
}

// A long poll is in flight whether or not anybody is served; a query is not.
func TestBackgroundIsLearnedAtRest(t *testing.T) {
	var m downstream.Memory
	at := start()
	step := func(queries, busy int) int {
		at = at.Add(10 * time.Second)
		d := m.Next(at, join(
			to(peer(1), 2, downstream.InFlight, 20*time.Second),
			to(peer(2), queries, downstream.InFlight, time.Second),
			to(peer(3), 1, downstream.Idle, time.Second),
		), &busy)
		for _, p := range d.Peers {
			if p.Address == peer(1) {
				return p.Waiting()
			}
		}
		return -1
	}
	require.Equal(t, 2, step(0, 0), "not known yet")
	step(0, 0)
	require.Equal(t, 0, step(0, 0), "always there")
	require.Equal(t, 0, step(20, 20), "and while the threads wait for another")
	require.Equal(t, 0, step(20, 20))
}

// What is in flight for the requests that are served is no background.
func TestABusyPoolIsNoBackground(t *testing.T) {
	var m downstream.Memory
	at := start()
	for range 20 {
		at = at.Add(time.Second)
		d := m.Next(at, to(peer(1), 10, downstream.InFlight, time.Second), new(40))
		require.Equal(t, 10, d.Peers[0].Waiting())
		require.Nil(t, d.Peers[0].Background, "it was never seen at rest")
	}
	d := m.Next(at.Add(time.Second), to(peer(1), 10, downstream.InFlight, time.Second), nil)
	require.Nil(t, d.Peers[0].Background, "nor where the requests cannot be counted")
}

// However many peers, and whatever they are called: twenty are named.
func TestPeersAreBounded(t *testing.T) {
	var m downstream.Memory
	var list []downstream.Connection
	for i := range 3000 {
		list = append(list, downstream.Connection{Cookie: uint64(i), Remote: peer(i), Flight: downstream.Idle})
	}
	list = append(list, to(peer(7), 4, downstream.InFlight, time.Second)...)
	d := m.Next(start(), list, nil)
	require.Len(t, d.Peers, downstream.MaxPeers)
	require.Equal(t, peer(7), d.Peers[0].Address)
	require.True(t, d.Partial, "more than a thousand are not counted")
	require.Equal(t, 1000-downstream.MaxPeers, d.Others.Connections)
}
