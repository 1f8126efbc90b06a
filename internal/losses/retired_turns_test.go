package losses

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Thousands of one namespace do not push out the few of another.
func TestRetainedInTurns(t *testing.T) {
	list := make([]uint64, 0, 1003)
	for range 1000 {
		list = append(list, 1)
	}
	list = append(list, 2, 2, 3)
	got := InTurns(list, func(n *uint64) uint64 { return *n })
	require.Len(t, got, len(list))
	require.Equal(t, []uint64{1, 2, 3, 1, 2, 1, 1}, got[:7])
	type one struct{ netns, at uint64 }
	kept := InTurns([]one{{1, 9}, {1, 8}, {2, 7}, {1, 6}}, func(o *one) uint64 { return o.netns })
	require.Equal(t, []one{{1, 9}, {2, 7}, {1, 8}, {1, 6}}, kept, "within a namespace the order stays")
}
