package connscan

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// walked is what a walk with n connections of a port, one after the other, leaves.
func walked(v *reservoir, port uint16, n, most int) {
	local := netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	for i := range n {
		v.add(&sockdiag.Socket{Local: local, Cookie: uint64(1 + i)}, most)
	}
}

// Each connection is as likely to be remembered, and chosen, as any other.
func TestReservoir(t *testing.T) {
	const found, most, size = 40_000, 10_000, 2000
	var v reservoir
	walked(&v, 80, found, most)
	require.Len(t, v.ids, most)
	require.False(t, v.whole())
	ids, of := v.pick(size, 0, 7)
	require.Equal(t, map[uint16]connections.Subset{80: {Known: found, Asked: size, New: 7}}, of)
	for what, list := range map[string][]sockdiag.ConnectionID{"remembered": v.ids, "chosen": ids} {
		var tenths [10]int
		seen := make(map[uint64]bool, len(list))
		for _, id := range list {
			tenths[(id.Cookie-1)/(found/10)]++
			seen[id.Cookie] = true
		}
		require.Len(t, seen, len(list), "none twice")
		for _, n := range tenths {
			require.InEpsilon(t, len(list)/10, n, .4, what) // six standard deviations
		}
	}
}

// A port that has few connections has all of them chosen, or is left out: where not all are
// remembered, and where more may have come than it has.
func TestReservoirOfPorts(t *testing.T) {
	var v reservoir
	walked(&v, 80, 9000, 9100)
	walked(&v, 81, 30, 9100)
	require.True(t, v.whole())
	require.Equal(t, 9000, v.largest())
	ids, of := v.pick(2000, 0, 0)
	require.Len(t, ids, 2030)
	require.True(t, of[81].Whole())
	require.Equal(t, connections.Subset{Known: 9000, Asked: 2000}, of[80])
	ids, of = v.pick(2000, 100, 1)
	require.Len(t, ids, 2000)
	require.Len(t, of, 1)

	walked(&v, 81, 300, 9100)
	_, of = v.pick(2000, 0, 0)
	require.NotContains(t, of, uint16(81), "some are forgotten")
	v.begin()
	require.Zero(t, v.found)
	walked(&v, 80, 1, 1)
	v.add(&sockdiag.Socket{}, 5)
	require.False(t, v.whole(), "without a cookie it cannot be asked for")
	require.True(t, v.unreadable)
}
