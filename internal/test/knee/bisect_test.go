package knee

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBisect(t *testing.T) {
	low, high, tries := bisect(1, 64, .02, false, func(load float64) bool { return load <= 40 })
	require.LessOrEqual(t, low, 40.)
	require.Greater(t, high, 40.)
	require.InDelta(t, 40, low, 1)
	require.Less(t, tries, 10)
	low, high, _ = bisect(0, 10, 0, true, func(load float64) bool { return load <= 3 })
	require.Equal(t, [2]float64{3, 4}, [2]float64{low, high})
}
