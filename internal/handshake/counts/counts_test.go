package counts

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// Clients of addresses of which nobody asks leave room for those of others, and take nothing from those that were told of.
func TestUntoldAddressesShareTheRoom(t *testing.T) {
	var c Clients
	told, other := netip.MustParseAddrPort("10.0.0.1:8080"), netip.MustParseAddrPort("10.0.0.2:8081")
	require.Zero(t, c.Of(told, false), "none yet")
	c.Add(told)
	require.EqualValues(t, 1, c.Of(told, false))
	flood := func(from int) {
		for n := from; n < from+1000; n++ {
			c.Add(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(n >> 16), byte(n >> 8), byte(n)}), 8080))
			require.LessOrEqual(t, len(c.untold), mostUntold)
		}
	}
	flood(0)
	c.Add(other)
	flood(1000)
	c.Add(told)
	require.EqualValues(t, 1, c.Of(other, false))
	require.EqualValues(t, 2, c.Of(told, true))
	require.EqualValues(t, 1, c.Of(other, true))
	require.Zero(t, c.Of(other, false))
	require.Empty(t, c.followed)
}
