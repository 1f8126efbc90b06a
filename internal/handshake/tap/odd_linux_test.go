package tap

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// withOptions connects n clients whose every packet has IP options, or an IPv6 extension header.
func (w world) withOptions(t *testing.T, to netip.AddrPort, n, level, name int, options []byte) []*client {
	clients := make([]*client, n)
	w.clients.Do(func() {
		for i := range clients {
			clients[i] = newClient(t, to)
			require.NoError(t, unix.SetsockoptString(clients[i].fd, level, name, string(options)))
			clients[i].begin(to)
		}
	})
	return clients
}

// Packets whose IP header has options are of clients like any other.
func TestClientsWithIPOptions(t *testing.T) {
	w := pair(t)
	l := w.listen(t, 128)
	tap := w.tap(t, l.Addr.Port())
	settled(t, w.withOptions(t, l.Addr, 5, unix.IPPROTO_IP, unix.IP_OPTIONS, []byte{1, 1, 1, 1, 1, 1, 1, 0})) // NOPs
	settled(t, w.connect(t, l.Addr, 3))
	e := decided(t, tap, l.Addr, 8)
	require.EqualValues(t, 8, e.Clients[outcome.Connected], "%v", e.Clients)
}

// Behind an IPv6 extension header no segment is looked for. Such clients are let in by the kernel: nothing is claimed of
// them, and others count as they do without them.
func TestClientsWithExtensionHeaders(t *testing.T) {
	for name, option := range map[string]int{"hop-by-hop": unix.IPV6_HOPOPTS, "destination": unix.IPV6_DSTOPTS} {
		t.Run(name, func(t *testing.T) {
			server, clients := nettest.Namespace(t), nettest.Namespace(t)
			addr, _ := vethIPv6(t, server, clients)
			w := world{server: server, clients: clients, addr: addr}
			l := w.listen(t, 128)
			tap := w.tap(t, l.Addr.Port())
			connected, failed := settled(t, w.withOptions(t, l.Addr, 5, unix.IPPROTO_IPV6, option, []byte{0, 0, 1, 4, 0, 0, 0, 0})) // PadN
			require.EqualValues(t, 5, connected, "%v", failed)
			settled(t, w.connect(t, l.Addr, 3))
			e := decided(t, tap, l.Addr, 3)
			require.EqualValues(t, 3, e.Clients[outcome.Connected], "%v", e.Clients)
		})
	}
}

// A SYN in two fragments is put together by the kernel, which answers it; those that are tapped are no segment, and
// nothing is claimed of it.
func TestFragmentedSYN(t *testing.T) {
	w := pair(t)
	l := w.listen(t, 128)
	tap := w.tap(t, l.Addr.Port())
	const n = 50
	w.inject(t, 2*n, func(i int) []byte {
		p := nettest.TCP4(stranger(i/2), l.Addr, packet.FlagSYN, uint32(i/2), 0)
		binary.BigEndian.PutUint16(p[4:], uint16(1+i/2)) // which packet it is a fragment of
		if i%2 == 0 {
			p = p[:44]
			binary.BigEndian.PutUint16(p[6:], 1<<13) // more fragments
			return p
		}
		binary.BigEndian.PutUint16(p[6:], 24/8)
		return append(p[:20:20], p[44:]...)
	})
	settled(t, w.connect(t, l.Addr, 3))
	e := decided(t, tap, l.Addr, 3)
	require.EqualValues(t, 3, e.Clients[outcome.Connected], "%v", e.Clients)
	r, err := tap.Report()
	require.NoError(t, err)
	require.Len(t, r.Endpoints, 1)
}

// TCP options that contradict their lengths, or end beyond the header, are the kernel's to judge. Who is answered is half
// open, as any other that does not go on; who is not (Linux 6.18 throws such a SYN away, and counts it nowhere) gave up.
func TestLongOddTCPOptions(t *testing.T) {
	t.Parallel()
	w := pair(t)
	l := w.listen(t, 128)
	tap := w.tap(t, l.Addr.Port())
	odd := [][]byte{
		{2, 0}, {2, 1}, {2, 255, 5}, {8, 10, 0}, {3, 3, 255, 1}, {19, 18, 1, 2}, {254, 2}, {5, 40}, {34, 2}, {0, 2, 4, 5},
	}
	const n = 100
	w.inject(t, n, func(i int) []byte {
		p := nettest.TCP4(stranger(i), l.Addr, packet.FlagSYN, uint32(i), 0)
		if i%2 == 0 {
			copy(p[40:60], odd[i/2%len(odd)])
		} else { // at the header's very end
			copy(p[40:58], "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01")
			copy(p[58:60], odd[i/2%len(odd)])
		}
		nettest.Seal4(p)
		return p
	})
	settled(t, w.connect(t, l.Addr, 3))
	e := decided(t, tap, l.Addr, 3+n)
	require.EqualValues(t, 3, e.Clients[outcome.Connected], "%v", e.Clients)
	halfOpen, gaveUp := e.Clients[outcome.HalfOpen], e.Clients[outcome.GaveUp]
	require.EqualValues(t, n, halfOpen+gaveUp, "%v", e.Clients)
	// Of the ten, five are well formed, and the kernel reads none at the header's end; one is a signature, for which there is no key.
	require.GreaterOrEqual(t, halfOpen, uint64(75), "%v", e.Clients)
	require.LessOrEqual(t, halfOpen, uint64(95), "%v", e.Clients)
}
