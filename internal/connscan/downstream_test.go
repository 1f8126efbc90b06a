package connscan

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Requests whose clients have closed are followed until it shows whether these had given up; those of connections that are forgotten are not.
func TestClosedLatelyPresses(t *testing.T) {
	closed := func(ago ...time.Duration) *connections.Found {
		f := new(connections.Found)
		for i, d := range ago {
			f.Add(&sockdiag.Socket{
				State: sockdiag.CloseWait, Inode: 1, RecvQ: 100, HasInfo: true, Remote: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(i)),
				Info: sockdiag.TCPInfo{BytesReceived: 99, DataSegsIn: 1, LastDataRecv: time.Hour, LastAckRecv: d},
			})
		}
		return f
	}
	require.False(t, presses(closed(), nil))
	require.True(t, presses(closed(time.Second), nil))
	require.True(t, presses(closed(time.Hour, time.Second, time.Hour), nil))
	require.False(t, presses(closed(time.Hour, closedLately), nil))
}
