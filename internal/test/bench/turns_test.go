package main

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestByTurnsAlternates(t *testing.T) {
	var order string
	note := func(name string) timed {
		return timed{name, func() error { order += name; return nil }}
	}
	times, err := byTurns(3, 2, note("a"), note("b"))
	require.NoError(t, err)
	require.Equal(t, "aabbaabbaabb", order)
	require.Len(t, times, 2)
	require.Len(t, times[0], 3)
	require.Len(t, times[1], 3)
}

func TestByTurnsNamesWhatFailed(t *testing.T) {
	broken := errors.New("broken")
	_, err := byTurns(1, 1, timed{"ss", func() error { return broken }})
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "ss: broken")
}

func TestQuantile(t *testing.T) {
	list := []time.Duration{5, 1, 4, 2, 3}
	require.EqualValues(t, 3, median(list))
	require.EqualValues(t, 1, quantile(list, 0))
	require.EqualValues(t, 5, quantile(list, 0.99))
	require.EqualValues(t, 5, quantile(list, 1))
	require.Zero(t, median[time.Duration](nil))
	require.Equal(t, []time.Duration{5, 1, 4, 2, 3}, list, "left as it was")
}

// A round that was disturbed weighs no more than another.
func TestRatioIsThatOfTheMedianRound(t *testing.T) {
	ours := []time.Duration{12, 120, 13}
	theirs := []time.Duration{10, 100, 1}
	require.InDelta(t, 1.2, ratio(ours, theirs), 1e-9)
	require.Zero(t, ratio([]time.Duration{1}, []time.Duration{0}))
}

// 20 ms of work each second are 2 %, wherever the window ends.
func TestShareOfBursts(t *testing.T) {
	const step = 10 * time.Millisecond
	for _, end := range []int{310, 355, 399, 402} {
		var series []usage
		var used time.Duration
		for i := range end {
			if phase := i % 100; phase == 50 || phase == 51 {
				used += 10 * time.Millisecond
			}
			series = append(series, usage{time.Duration(i) * step, used})
		}
		require.InDelta(t, 0.02, shareOfBursts(series), 1e-9, end)
	}
	idle := []usage{{0, 0}, {time.Second, time.Millisecond}}
	require.InDelta(t, 0.001, shareOfBursts(idle), 1e-9)
}

func TestBounds(t *testing.T) {
	list := make([]float64, 0, 52)
	for i := range 52 {
		list = append(list, float64((i*31)%52)) // 0 to 51, mixed
	}
	low, high := bounds(list)
	// The binomial distribution of 52 throws: 19 or fewer heads come at 3.5 %, 20 or fewer at 6.3 %.
	require.InDelta(t, 19, low, 0)
	require.InDelta(t, 32, high, 0)

	list[0], list[1] = 1e9, -1e9
	_, same := bounds(list)
	require.InDelta(t, high, same, 1, "one that is wild moves nothing far")

	low, high = bounds([]float64{1, 2, 3, 4, 5})
	require.InDelta(t, 1, low, 0)
	require.InDelta(t, 5, high, 0)
	low, _ = bounds([]float64{1, 2, 3, 4})
	require.True(t, math.IsInf(low, -1))
	low, _ = bounds(nil)
	require.True(t, math.IsInf(low, -1))
}

func TestBesideNeighbours(t *testing.T) {
	drift := []turn{{0, 100, 0}, {1, 104.5, 0}, {0, 120, 0}, {2, 120, 0}, {0, 80, 0}}
	require.InDeltaSlice(t, []float64{0.95}, besideNeighbours(drift, 1), 1e-9)
	require.InDeltaSlice(t, []float64{1.2}, besideNeighbours(drift, 2), 1e-9)
	require.InDeltaSlice(t, []float64{120. / 90}, control(drift), 1e-9)
}
