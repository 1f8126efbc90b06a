package connections

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func peer(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

func TestMajority(t *testing.T) {
	var none frequent
	require.Nil(t, none.majority(0))

	var f frequent
	for range 50 {
		f.add(netip.MustParseAddr("::ffff:10.0.0.1"))
	}
	for n := range 7 {
		f.add(peer(n))
	}
	require.Equal(t, &model.PeerCount{Address: netip.MustParseAddr("10.0.0.1"), Connections: 50}, f.majority(57))
	require.Nil(t, f.majority(100), "half is no majority")
}

// Whatever the order, what is named has a majority, and two thirds among
// thousands of others are found.
func TestMajorityAmongMany(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var f frequent
		var all []netip.Addr
		for n := range 3000 {
			if all = append(all, peer(n+1)); n%3 > 0 {
				all[n] = peer(0)
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, a := range all {
			f.add(a)
		}
		got := f.majority(len(all))
		require.NotNil(t, got)
		require.Equal(t, peer(0), got.Address)
		require.LessOrEqual(t, got.Connections, 2000)
	}
	var f frequent
	for n := range 3000 {
		f.add(peer(n))
	}
	require.Nil(t, f.majority(3000))
}

// While there are no more addresses than places the five of most are exact.
func TestTopPeers(t *testing.T) {
	var f frequent
	for n := range 7 {
		for range n + 1 {
			f.add(peer(n))
		}
	}
	require.Equal(t, []model.PeerCount{
		{Address: peer(6).Unmap(), Connections: 7},
		{Address: peer(5).Unmap(), Connections: 6},
		{Address: peer(4).Unmap(), Connections: 5},
		{Address: peer(3).Unmap(), Connections: 4},
		{Address: peer(2).Unmap(), Connections: 3},
	}, f.top())
	require.Empty(t, (&frequent{}).top())
}
