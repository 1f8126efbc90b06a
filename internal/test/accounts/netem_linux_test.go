package accounts

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// resolve has each end know the other's hardware address before the clients come: their SYNs
// would wait for it.
func resolve(t testing.TB, from *nettest.NS, to netip.Addr, wait time.Duration) {
	from.Do(func() {
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9)))
		require.NoError(t, err)
		defer c.Close()
		for range 3 { // the network may lose some
			_, _ = c.Write([]byte{0})
			time.Sleep(wait)
		}
	})
}
