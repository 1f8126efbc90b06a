package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMissedTicks(t *testing.T) {
	var s self
	now := time.Unix(1_700_000_000, 0)
	for _, step := range []time.Duration{0, 10, 12, 8, 31, 10, 1000} {
		now = now.Add(step * time.Millisecond)
		s.tick(now, 10*time.Millisecond)
	}
	require.EqualValues(t, 2+99, s.report(now).MissedTicks)
	require.Equal(t, time.Second, s.report(now).LongestGap)
	require.Equal(t, 2*time.Second, s.report(now.Add(2*time.Second)).LongestGap, "it has not ended")
	for range 100 * gapSeconds {
		now = now.Add(10 * time.Millisecond)
		s.tick(now, 10*time.Millisecond)
	}
	require.Equal(t, 10*time.Millisecond, s.report(now).LongestGap, "that of a minute ago is forgotten")
}

// Samples or snapshots that have stopped for half a minute are a failure of the
// agent's own.
func TestHealth(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	at := begun.Add
	var s self
	require.NoError(t, s.healthy(at(29*time.Second), begun), "it begins")
	require.ErrorIs(t, s.healthy(at(30*time.Second), begun), errNoSamples)
	s.sampled(at(40*time.Second), 0, true)
	require.ErrorIs(t, s.healthy(at(41*time.Second), begun), errNoSamples, "the kernel did not answer")
	s.sampled(at(41*time.Second), 0, false)
	require.ErrorIs(t, s.healthy(at(42*time.Second), begun), errNoSnapshots)
	s.published(at(42 * time.Second))
	require.NoError(t, s.healthy(at(70*time.Second), begun))
	require.ErrorIs(t, s.healthy(at(71*time.Second), begun), errNoSamples)
	require.EqualValues(t, 1, s.report(begun).FailedSamples)
}
