package recall

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Who is turned away in a flood makes no client of another port forgotten, however many ports the flood has.
func TestFloodForgetsNoOthers(t *testing.T) {
	const calm = 8081
	for name, flood := range map[string]func(n int) uint16{
		"one":               func(int) uint16 { return 8080 },
		"a hundred":         func(n int) uint16 { return uint16(9000 + n%100) },
		"two in turns":      func(n int) uint16 { return uint16(9000 + n%2) },
		"one, then another": func(n int) uint16 { return uint16(9000 + n/50_000) },
	} {
		t.Run(name, func(t *testing.T) {
			var e Ended
			const clients = MaxEnded / 200
			for n := range uint64(clients) {
				require.True(t, e.Add(time.Second, calm, n, time.Duration(n)))
			}
			for n := range 100_000 {
				e.Add(time.Second+time.Duration(n)*time.Microsecond, flood(n), uint64(1000+n), 0)
				require.LessOrEqual(t, e.names, MaxEnded)
			}
			require.Equal(t, MaxEnded, e.Len())
			for n := range uint64(clients) {
				first, ok := e.FirstSYN(n)
				require.True(t, ok)
				require.Equal(t, time.Duration(n), first)
				require.False(t, e.Add(2*time.Second, calm, n, 0))
			}
			e.Advance(2*time.Second + endedFor - 1)
			require.Equal(t, clients, e.Len())
			e.Advance(2*time.Second + endedFor)
			require.Zero(t, e)
		})
	}
}
