package netns_test

import (
	"fmt"
	"net/netip"
	"strings"
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

// A user may have as many addresses and local routes in a namespace of his own as he likes. They are not read one by one for ever.
func TestLocalAddressesAreBounded(t *testing.T) {
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for name, c := range map[string]struct {
		commands func(i int) string
		n        int
		want     bool // that every address is taken for its own
	}{
		"addresses":     {func(i int) string { return fmt.Sprintf("address add 10.1.%d.%d/32 dev lo", i>>8, i&255) }, 1100, true},
		"few addresses": {func(i int) string { return fmt.Sprintf("address add 10.1.%d.%d/32 dev lo", i>>8, i&255) }, 900, false},
		"routes": {func(i int) string {
			return fmt.Sprintf("route add local 10.1.%d.%d/32 dev lo table local", i>>8, i&255)
		}, 1100, true},
		"ranges":         {func(i int) string { return fmt.Sprintf("route add local 10.1.%d.0/24 dev lo table local", i) }, 70, true},
		"as many ranges": {func(i int) string { return fmt.Sprintf("route add local 10.1.%d.0/24 dev lo table local", i) }, 60, false},
	} {
		t.Run(name, func(t *testing.T) {
			ns := nettest.Namespace(t)
			var script strings.Builder
			for i := range c.n {
				fmt.Fprintln(&script, c.commands(i))
			}
			batch := ns.Command("ip", "-batch", "-")
			batch.Stdin = strings.NewReader(script.String())
			out, err := batch.CombinedOutput()
			require.NoError(t, err, "%s", out)
			ns.Do(func() {
				got, err := netns.LocalAddresses()
				require.NoError(t, err)
				if c.want {
					require.Equal(t, all, got)
				} else {
					require.GreaterOrEqual(t, len(got), c.n)
				}
			})
		})
	}
}
