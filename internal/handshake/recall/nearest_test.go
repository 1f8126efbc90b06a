package recall

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// What a host's handshakes take at least, and how much longer some took, which fades with those that follow.
func TestNearest(t *testing.T) {
	var n Nearest
	here, there := packet.Addr{1}, packet.Addr{2}
	least := func(at time.Duration, of packet.Addr) [2]uint16 {
		took, more := n.Least(at, of, 7)
		return [2]uint16{took, more}
	}
	require.Zero(t, least(0, here))
	n.Note(0, here, 7, 40)
	require.Equal(t, [2]uint16{40, 0}, least(0, here), "the first tells nothing of others")
	n.Note(time.Second, here, 7, 240)
	require.Equal(t, [2]uint16{40, 200}, least(time.Second, here))
	n.Note(2*time.Second, here, 7, 30)
	require.Equal(t, uint16(30), least(2*time.Second, here)[0])
	require.InDelta(t, 210, least(2*time.Second, here)[1], 5)
	for range 1000 {
		n.Note(3*time.Second, here, 7, 30)
	}
	require.Equal(t, [2]uint16{30, 0}, least(3*time.Second, here))
	require.Zero(t, least(3*time.Second, there))
	require.Zero(t, least(2*time.Minute, here), "networks change")
	n.Note(2*time.Minute, there, 7, 5)
	require.Equal(t, [2]uint16{5, 0}, least(2*time.Minute, there), "another has its place")
	require.Zero(t, least(2*time.Minute, here))
}
