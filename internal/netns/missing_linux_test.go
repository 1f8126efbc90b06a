package netns_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// TestMissingAddresses: an address is there as long as packets to it are delivered, whichever route says so.
func TestMissingAddresses(t *testing.T) {
	a, b := nettest.Namespace(t), nettest.Namespace(t)
	own, _ := nettest.Veth(t, a, b)
	ip := func(args ...string) {
		out, err := a.Command("ip", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	ip("link", "add", "other", "type", "veth", "peer", "name", "another")
	ip("link", "set", "another", "up")
	ip("link", "set", "other", "up")
	ip("address", "add", "203.0.113.7/24", "dev", "other")
	ip("-6", "address", "add", "2001:db8:1::7/64", "dev", "other", "nodad")
	ip("route", "add", "local", "192.0.2.0/24", "dev", "lo", "table", "local")  // AnyIP
	ip("route", "add", "local", "198.51.100.0/24", "dev", "lo", "table", "100") // by a rule of its own
	ip("rule", "add", "to", "198.51.100.0/24", "table", "100", "priority", "100")
	addresses := func(list ...string) (out []netip.Addr) {
		for _, s := range list {
			out = append(out, netip.MustParseAddr(s))
		}
		return out
	}
	missing := func(of ...netip.Addr) (got []netip.Addr) {
		a.Do(func() {
			var err error
			got, err = netns.MissingAddresses(of)
			require.NoError(t, err)
		})
		return got
	}
	there := append(addresses("127.0.0.1", "127.0.0.9", "::1", "203.0.113.7", "2001:db8:1::7", "192.0.2.77", "198.51.100.8"), own)
	require.Empty(t, missing(there...))
	gone := addresses("203.0.113.8", "2001:db8:1::8", "10.255.255.1", "2001:db8:2::1") // on a network of its own, and on none
	require.Equal(t, gone, missing(append(there, gone...)...))

	ip("address", "del", "203.0.113.7/24", "dev", "other")
	require.Equal(t, addresses("203.0.113.7"), missing(there...))
	ip("address", "add", "203.0.113.7/24", "dev", "other")
	require.Empty(t, missing(there...))
	ip("link", "set", "other", "down") // IPv4 is still delivered where it comes by another one
	require.Equal(t, addresses("2001:db8:1::7"), missing(there...))
}
