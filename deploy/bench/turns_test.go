package main

import (
	"errors"
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
