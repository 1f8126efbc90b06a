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
	w.tagged(t, 5<<13, strangers, func(i int) []byte { return nettest.TCP4(stranger(i), l.Addr, packet.FlagSYN, uint32(1000*i), 0) })
	e := decided(t, tap, l.Addr, room+strangers)
	require.EqualValues(t, strangers, e.Clients[outcome.GaveUp])
	require.Equal(t, w.listenDrops(t)-drops, e.Unanswered)
}

// One of a VLAN that the device has no part in is nobody's, whatever is in it.
func TestFramesOfAnotherVLAN(t *testing.T) {
	w := pair(t)
	l := w.listen(t, 128)
	tap := w.tap(t, l.Addr.Port())
	for _, vid := range []uint16{1, 7, 4095} {
		w.tagged(t, vid, 50, func(i int) []byte { return nettest.TCP4(stranger(i), l.Addr, packet.FlagSYN, uint32(i), 0) })
	}
	settled(t, w.connect(t, l.Addr, 3))
	e := decided(t, tap, l.Addr, 3)
	require.EqualValues(t, 3, e.Clients[outcome.Connected], "%v", e.Clients)
	require.Zero(t, e.Unanswered)
	r, err := tap.Report()
	require.NoError(t, err)
	require.Len(t, r.Endpoints, 1)
}

// tagged sends IPv4 packets from the clients' namespace in frames with a tag: a priority and a VLAN's number.
func (w world) tagged(t *testing.T, tag uint16, n int, build func(i int) []byte) {
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
			frame = binary.BigEndian.AppendUint16(frame, tag)
			frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_IP)
			frame = append(frame, build(i)...)
			require.NoError(t, unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: from.Index}))
		}
	})
}
