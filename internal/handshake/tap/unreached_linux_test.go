package tap

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Clients that the server's SYN-ACKs do not reach still try, and have given up when they leave; others are let in.
func TestUnreached(t *testing.T) {
	t.Parallel()
	try := func(t *testing.T, w world) {
		l, tap := w.known(t)
		w.server.Do(func() { // frames for the clients go to nobody
			link, err := netlink.LinkByName("veth0")
			require.NoError(t, err)
			far := w.addr.As4()
			far[3] = 2 // see nettest.Veth
			require.NoError(t, netlink.NeighSet(&netlink.Neigh{
				LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: far[:], HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 99},
			}))
		})
		const clients = 20
		lost := w.connect(t, l.Addr, clients)
		require.Eventually(t, func() bool { return countedAt(t, tap, l.Addr).Unreached == clients }, time.Minute, 50*time.Millisecond)
		for _, c := range lost {
			in, err := c.state(t)
			require.NoError(t, err)
			require.False(t, in)
			c.close()
		}
		e := decided(t, tap, l.Addr, 1+clients)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1, outcome.GaveUp: clients}, e.Clients)
		require.EqualValues(t, clients, e.GaveUpUnreached)
	}
	across(t, "veth", nettest.Veth, try)
	acrossOneWay(t, try)
}

// Forged SYNs that are repeated count as such clients: each address, port and sequence number once, however often it comes.
func TestForgedAndRepeated(t *testing.T) {
	t.Parallel()
	across(t, "veth", nettest.Veth, func(t *testing.T, w world) {
		l, tap := w.known(t)
		w.server.Sysctl(t, "net.ipv4.tcp_synack_retries", "2") // soon over
		const forged, times = 50, 4
		for range times {
			w.clients.Do(func() { nettest.HalfOpen(t, l.Addr, 1, forged) })
			time.Sleep(time.Second)
		}
		e := decided(t, tap, l.Addr, 1+forged)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1, outcome.GaveUp: forged}, e.Clients)
		require.EqualValues(t, forged, e.GaveUpUnreached)
	})
}
