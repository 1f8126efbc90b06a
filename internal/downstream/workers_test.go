package downstream_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// numbered gives each connection a socket of its own.
func numbered(list []downstream.Connection) []downstream.Connection {
	for i := range list {
		list[i].Inode = uint32(100 + i)
	}
	return list
}

func TestWork(t *testing.T) {
	list := numbered(join(to(peer(1), 3, downstream.Unknown, time.Second), to(peer(2), 1, downstream.Idle, 0), to(peer(3), 1, downstream.Connecting, 0)))
	w := downstream.NewWork(list)
	w.Add(downstream.Reading, 100)
	w.Add(downstream.Reading, 101)
	w.Add(downstream.Reading, 101) // two threads on one connection
	w.Add(downstream.Reading, 104)
	w.Add(downstream.Reading, 999) // of the server's own client
	w.Add(downstream.Reading, 0)
	w.Add(downstream.Running, 0)
	w.Add(downstream.Parked, 0)
	w.Add(downstream.Elsewhere, 0)
	w.Mark(list)
	var m downstream.Memory
	d := m.Next(start(), list, nil)
	w.Fill(d)
	require.Equal(t, &model.Workers{Threads: 9, Running: 1, Parked: 1, Other: 3}, d.Workers)
	got := map[string][4]int{}
	for _, p := range d.Peers {
		got[p.Address.String()] = [4]int{*p.Workers, p.InFlight, p.Unknown, p.Connecting}
	}
	require.Equal(t, map[string][4]int{
		peer(1).String(): {3, 2, 1, 0}, // seen to be waited for: in flight
		peer(2).String(): {0, 0, 0, 0},
		peer(3).String(): {1, 0, 0, 1},
	}, got)
	require.Equal(t, 3, w.WaitsAt(peer(1)))
}

// A socket that is none of the connections is named later: of a name server, or of the Unix domain.
func TestWorkOnOtherSockets(t *testing.T) {
	w := downstream.NewWork(numbered(to(peer(1), 1, downstream.Idle, 0)))
	for _, socket := range []uint32{7, 7, 8, 9, 10} {
		w.Add(downstream.Reading, socket)
	}
	require.Equal(t, map[uint32]int{7: 2, 8: 1, 9: 1, 10: 1}, w.Unnamed())
	w.Name(7, model.UDPReceive, peer(53))
	w.Name(8, model.UDPReceive, peer(54))
	w.Name(9, model.UnixReceive, netip.AddrPort{})
	var m downstream.Memory
	d := m.Next(start(), nil, nil)
	w.Fill(d)
	require.Equal(t, &model.Workers{Threads: 5, ReceivingUDP: 3, ReceivingUnix: 1, UDPPeer: peer(53), Other: 1}, d.Workers)
}

// Where the threads cannot be read nothing is said of them.
func TestNoWork(t *testing.T) {
	var w *downstream.Work
	list := to(peer(1), 1, downstream.Idle, 0)
	w.Mark(list)
	d := (&downstream.Memory{}).Next(start(), list, nil)
	w.Fill(d)
	require.Nil(t, d.Workers)
	require.Nil(t, d.Peers[0].Workers)
	require.Zero(t, w.WaitsAt(peer(1)))
}
