package connscan

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Clients that have closed are no reason to read what the worker threads wait for, nor where outgoing connections lead: their
// connections are followed.
func TestGivingUpDoesNotPress(t *testing.T) {
	f := new(connections.Found)
	for i := range 10 {
		f.Add(&sockdiag.Socket{
			State: sockdiag.CloseWait, Inode: 1, RecvQ: 100, HasInfo: true, Remote: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(i)),
			Info: sockdiag.TCPInfo{BytesReceived: 99, DataSegsIn: 1, LastDataRecv: time.Hour, LastAckRecv: time.Second},
		})
	}
	require.True(t, f.GivesUp(nil))
	require.False(t, presses(f, &model.Connector{}))
}
