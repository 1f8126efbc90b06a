package tap

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// floodPackets is how many addresses TestLongSpoofedFlood sends a SYN from.
func floodPackets() int { return proof.Size(1_000_000, 200_000) }

// A SYN flood of spoofed addresses, each of which sends one, against a listener
// with SYN cookies is called one, is not counted as clients that are connected, and
// takes no more memory than the tap may: 100,000 attempts with their index are 10.2 MiB, the ring is one, the
// sketch of the others half of one; what is read and asked for at that moment is the rest.
func TestLongSpoofedFlood(t *testing.T) {
	packets := floodPackets()
	const most, step = 14 << 20, 500
	w := pair(t)
	w.routeToStrangers(t)
	l := w.listen(t, 128)
	received := w.segments(t)
	before := nettest.Heap()
	tap := w.tap(t, l.Addr.Port())
	var flood *outcome.Flood
	report := func() (r Report, e outcome.Endpoint) {
		r, err := tap.Report()
		require.NoError(t, err)
		if len(r.Endpoints) > 0 {
			e = r.Endpoints[0]
		}
		if e.Flood != nil {
			flood = e.Flood
		}
		return r, e
	}
	highest := uint64(0)
	for sent := 0; sent < packets; sent += step {
		w.inject(t, step, func(i int) []byte {
			return nettest.TCP4(spoofed(sent+i), l.Addr, packet.FlagSYN, uint32(sent+i), 0)
		})
		report() // the ring holds some thousand packets, and this machine may be busy
		if sent%(50*step) == 0 {
			highest = max(highest, nettest.Heap())
		}
	}
	highest = max(highest, nettest.Heap())
	taken := int64(highest) - int64(before) + int64(large().bytes())
	received = w.segments(t) - received
	var e outcome.Endpoint
	var r Report
	require.Eventually(t, func() bool {
		r, e = report()
		return e.Open() == 0
	}, 2*time.Minute, 50*time.Millisecond, "%+v", &e)

	counted := sumOf(e.Clients) + e.Untracked
	t.Logf("of %d spoofed SYNs TCP met %d and %d were counted, %d packets were lost by the ring; %.1f MiB; %v, %+v",
		packets, received, counted, r.Lost, float64(taken)/(1<<20), e.Clients, flood)
	require.Less(t, taken, int64(most))
	require.LessOrEqual(t, float64(counted), float64(packets)*1.01)
	require.GreaterOrEqual(t, float64(counted+r.Lost), float64(received)*.99, "each was counted, or is reported as lost")
	require.Less(t, float64(e.Clients[outcome.Connected]), float64(packets)*.001, "nobody answered: %v", e.Clients)
	require.NotNil(t, flood)
	require.Greater(t, float64(flood.Sources), .9*float64(flood.Attempts))
}

// spoofed is one of 16 million addresses, to which routeToStrangers leads.
func spoofed(i int) netip.AddrPort {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], 11<<24|uint32(i))
	return netip.AddrPortFrom(netip.AddrFrom4(ip), 40_000)
}

// routeToStrangers sends the answers to spoofed addresses to the clients'
// namespace, which drops them.
func (w world) routeToStrangers(t *testing.T) {
	w.server.Do(func() {
		link, err := netlink.LinkByName("veth0")
		require.NoError(t, err)
		dst := &net.IPNet{IP: net.IPv4(11, 0, 0, 0), Mask: net.CIDRMask(8, 32)}
		via := w.addr.As4()
		via[3] = 2 // see nettest.Veth
		require.NoError(t, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Gw: via[:]}))
	})
}

// segments is how many TCP has met in the server's namespace (Tcp InSegs).
func (w world) segments(t *testing.T) (n uint64) {
	w.server.Do(func() { n = nettest.TCP(t)("InSegs") })
	return n
}
