package outcome

import (
	"hash/maphash"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDistinctCountsEachOnce(t *testing.T) {
	d, seed := newDistinct(16), maphash.MakeSeed()
	weights := 0.0
	for range 3 {
		for i := range 50_000 {
			weight := d.weight()
			if d.add(maphash.Comparable(seed, i)) {
				weights += weight
			}
		}
	}
	require.InEpsilon(t, 50_000, d.count(), .03)
	require.InEpsilon(t, 50_000, weights, .03)
	d.reset()
	require.Zero(t, d.count())
}
