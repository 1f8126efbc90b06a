package tap

import (
	"encoding/binary"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A frame with a priority and no VLAN (802.1p, VID 0) belongs to the device itself.
func TestPriorityTag(t *testing.T) {
	const room, strangers = 2, 20
	w := pair(t)
	w.routeToStrangers(t)
	l := w.listen(t, room-1)
	tap := w.tap(t, l.Addr.Port())
	w.clients.Do(func() { nettest.Queue(t, l.Addr, room) })
	drops := w.listenDrops(t)
	w.tagged(t, strangers, func(i int) []byte { return nettest.TCP4(stranger(i), l.Addr, packet.FlagSYN, uint32(1000*i), 0) })
	e := decided(t, tap, l.Addr, room+strangers)
	require.EqualValues(t, strangers, e.Clients[outcome.GaveUp])
	require.Equal(t, w.listenDrops(t)-drops, e.Unanswered)
}

// tagged sends IPv4 packets from the clients' namespace in frames with a priority.
func (w world) tagged(t *testing.T, n int, build func(i int) []byte) {
	var to, from *net.Interface
	device := func(ns *nettest.NS) (i *net.Interface) {
		ns.Do(func() {
			var err error
			i, err = net.InterfaceByName("veth0")
			require.NoError(t, err)
		})
		return i
	}
	to, from = device(w.server), device(w.clients)
	w.clients.Do(func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		defer func() { _ = unix.Close(fd) }()
		for i := range n {
			frame := append([]byte(to.HardwareAddr), from.HardwareAddr...)
			frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_8021Q)
			frame = binary.BigEndian.AppendUint16(frame, 5<<13) // priority 5, VID 0
			frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_IP)
			frame = append(frame, build(i)...)
			require.NoError(t, unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: from.Index}))
		}
	})
}
