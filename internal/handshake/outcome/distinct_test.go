package outcome

import (
	"hash/maphash"
	"math/rand/v2"
	"testing"
	"time"

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

// However many clients a flood has, the next ones are counted, and none for many others.
func TestSketchIsNeverFull(t *testing.T) {
	var s Sketch
	names := rand.New(rand.NewPCG(1, 2))
	sum, most := 0.0, 0.0
	const flood = 15_000_000 // in one minute
	for range flood {
		n := s.Add(time.Second, names.Uint64())
		sum, most = sum+n, max(most, n)
	}
	require.InEpsilon(t, flood, sum, .01)
	require.InDelta(t, untrackedMost, most, .001)
}
