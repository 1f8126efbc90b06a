package shares

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// Who is refused would not be remembered, or at the cost of another of its host.
func TestRefusesWhomAddDoes(t *testing.T) {
	const most = 8
	random := rand.New(rand.NewPCG(4, 7))
	refused, removed := 0, 0
	for range 2000 {
		var p Slots[int]
		hosts, servers := random.IntN(12)+1, random.IntN(3)+1
		for n := range 40 {
			e := Ends{Server: End{Port: uint16(random.IntN(servers))}, Client: End{packet.Addr{1, 15: byte(n)}, uint16(n)}}
			e.Client.Addr[1] = byte(random.IntN(hosts))
			lot := random.Uint64N(20)
			before := map[Ends]bool{}
			for i := range p.taken {
				before[p.taken[i].ends] = true
			}
			refuses := p.Refuses(&e, most, lot)
			require.Equal(t, refuses, p.Refuses(&e, most, lot), "it is remembered who goes next")
			switch added := p.Add(&e, n, most, lot); {
			case refuses && added:
				removed++
				for i := range p.taken {
					delete(before, p.taken[i].ends)
				}
				require.Len(t, before, 1)
				for gone := range before {
					require.Equal(t, e.Server, gone.Server)
					require.Equal(t, e.Client.Addr.Host(), gone.Client.Addr.Host())
				}
			case refuses:
				refused++
			}
			require.LessOrEqual(t, p.Len(), most)
			require.Equal(t, p.Find(&e) != nil, p.at(&e) >= 0)
		}
	}
	require.Greater(t, refused, 1000)
	t.Logf("%d refused, and %d for another of their host", refused, removed)
}

func TestForget(t *testing.T) {
	var p Slots[int]
	a, b := Ends{Client: End{Port: 1}}, Ends{Client: End{Port: 2}}
	require.Nil(t, p.Find(&a))
	require.True(t, p.Add(&a, 1, 4, 0))
	require.True(t, p.Add(&b, 2, 4, 0))
	p.Forget(&a)
	p.Forget(&a)
	require.Nil(t, p.Find(&a))
	require.Equal(t, 2, *p.Find(&b))
	p.RemoveIf(func(e *Ends, n *int) bool { return *e == b && *n == 2 })
	require.Zero(t, p.Len())
}
