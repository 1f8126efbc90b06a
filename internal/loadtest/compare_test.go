package loadtest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/loadtest"
)

func TestCompare(t *testing.T) {
	one := loadtest.Compare([]float64{10}, []float64{12})
	require.False(t, one.Known, "one run each says nothing of noise")
	require.False(t, one.Real())
	d := loadtest.Compare([]float64{10, 11, 10.5}, []float64{10.4, 10.9, 10.2})
	require.True(t, d.Known)
	require.False(t, d.Real())
	require.True(t, loadtest.Compare([]float64{10, 11, 10.5}, []float64{20, 21, 20.5}).Real())
	require.True(t, loadtest.Compare([]float64{10, 10, 10}, []float64{11, 11, 11}).Real(), "no variation at all")
	require.False(t, loadtest.Compare([]float64{8, 12, 10}, []float64{11}).Real())
	require.True(t, loadtest.Compare([]float64{40}, []float64{10, 11, 12}).Real())
}

// Of twenty comparisons of the same thing about one is taken for a difference.
func TestCompareIsCalibrated(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	runs := func() (out []float64) {
		for range 5 {
			out = append(out, 100+5*r.NormFloat64())
		}
		return out
	}
	const tries = 4000
	real := 0
	for range tries {
		if loadtest.Compare(runs(), runs()).Real() {
			real++
		}
	}
	require.InDelta(t, .05, float64(real)/tries, .015)
}
