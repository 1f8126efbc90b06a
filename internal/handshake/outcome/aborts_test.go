package outcome

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// However many connections of one client the server resets, those of another are known to be cut off in their answer.
func TestAbortsAreShared(t *testing.T) {
	reset := func(a *Account, at time.Duration, flags uint8, client string, port int, seq uint32) {
		a.ServerReset(at, &packet.Segment{Dst: netip.MustParseAddr(client).As16(), DstPort: uint16(port), Flags: flags, Seq: seq})
	}
	for name, flood := range map[string]func(n int) string{
		"of one address":      func(int) string { return "10.0.0.1" },
		"of one /64":          func(n int) string { return netip.AddrFrom16([16]byte{32, 1, 15: byte(n)}).String() },
		"of twenty addresses": func(n int) string { return netip.AddrFrom4([4]byte{10, 0, 1, byte(n % 20)}).String() },
	} {
		t.Run(name, func(t *testing.T) {
			a, at := new(Account), time.Second
			n := 0
			more := func() {
				for range 10 * mostAborts {
					n++
					at += time.Millisecond / 4
					reset(a, at, packet.FlagRST|packet.FlagACK, flood(n), n, 5000)
					require.LessOrEqual(t, len(a.aborts.list), mostAborts)
				}
			}
			more()
			others := []string{"10.0.0.7", "2001:db8::7"}
			for _, o := range others {
				reset(a, at, packet.FlagRST|packet.FlagACK, o, 41000, 5000)
			}
			more()
			for _, o := range others {
				reset(a, at, packet.FlagRST, o, 41000, 3000)
			}
			require.EqualValues(t, len(others), a.Report(at).ResetInAnswer)
			reset(a, at, packet.FlagRST, flood(n), n, 3000)
			require.EqualValues(t, len(others)+1, a.Report(at).ResetInAnswer, "the latest of the flood")
			all := map[packet.Addr]int{}
			for i := range a.aborts.list {
				all[a.aborts.list[i].client.Host()]++
			}
			for i := range a.aborts.list {
				require.Equal(t, all[a.aborts.list[i].client.Host()], a.aborts.list[i].ofHost)
			}
		})
	}
}
