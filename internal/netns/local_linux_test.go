package netns_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// TestLocalAddresses: of a device, and of local routes that are of no device.
func TestLocalAddresses(t *testing.T) {
	a, b := nettest.Namespace(t), nettest.Namespace(t)
	own, peer := nettest.Veth(t, a, b)
	for _, route := range []string{"192.0.2.10/32", "198.51.100.0/24", "2001:db8::/64"} {
		// iproute2 takes the table of local addresses by itself, busybox does not.
		out, err := a.Command("ip", "route", "add", "local", route, "dev", "lo", "table", "local").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	a.Do(func() {
		got, err := netns.LocalAddresses()
		require.NoError(t, err)
		for _, want := range []string{own.String() + "/32", "192.0.2.10/32", "198.51.100.0/24", "2001:db8::/64", "::1/128", "127.0.0.0/8"} {
			require.Contains(t, got, netip.MustParsePrefix(want))
		}
		for _, p := range got {
			require.False(t, p.Contains(peer), "%v", p)
		}
	})
}
