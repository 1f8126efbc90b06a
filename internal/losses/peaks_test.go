package losses

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPeaks(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	p := newPeaks(time.Minute)
	_, _, ok := p.highest(start)
	require.False(t, ok, "nothing was sampled")

	p.observe(start, 3)
	p.observe(start.Add(10*time.Millisecond), 101) // between two scrapes
	p.observe(start.Add(20*time.Millisecond), 0)
	for s := 1; s <= 59; s++ {
		p.observe(start.Add(time.Duration(s)*time.Second), 1)
		length, when, ok := p.highest(start.Add(time.Duration(s) * time.Second))
		require.True(t, ok)
		require.Equal(t, 101, length, "second %d", s)
		require.Equal(t, start.Add(10*time.Millisecond), when)
	}
	p.observe(start.Add(60*time.Second), 1)
	length, _, _ := p.highest(start.Add(60 * time.Second))
	require.Equal(t, 1, length, "the minute has passed")
	_, _, ok = p.highest(start.Add(time.Hour))
	require.False(t, ok, "nothing was sampled in the last minute")
}

func TestPeaksSinceTheLastTime(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	p := newPeaks(time.Minute)
	require.Zero(t, p.takeRecent())
	p.observe(start, 101)
	p.observe(start.Add(time.Millisecond), 3)
	require.Equal(t, 101, p.takeRecent())
	p.observe(start.Add(2*time.Millisecond), 3)
	require.Equal(t, 3, p.takeRecent(), "another look, another peak")
}
