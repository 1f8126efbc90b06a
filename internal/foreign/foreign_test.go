package foreign

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
)

// What is endless ends.
func TestBounds(t *testing.T) {
	snap := &api.Snapshot{Host: strings.Repeat("ä", 5000), Notes: make([]string, 10_000), NetNS: []api.NetNS{{Counters: map[string]uint64{}}}}
	for i := range 1000 {
		snap.NetNS[0].Counters[strings.Repeat("c", i)+"\n"] = 1
	}
	Clean(snap)
	require.LessOrEqual(t, len(snap.Host), MaxText+len("…"))
	require.Len(t, snap.Notes, MaxList)
	require.Equal(t, MaxList, cap(snap.Notes), "the memory of the rest is gone, too")
	require.Len(t, snap.NetNS[0].Counters, MaxNames)
	for name := range snap.NetNS[0].Counters {
		require.NotContains(t, name, "\n")
	}
}
