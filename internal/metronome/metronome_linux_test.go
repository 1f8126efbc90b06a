package metronome

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newTest(t *testing.T, interval time.Duration) *Metronome {
	t.Helper()
	m, err := New(interval)
	require.NoError(t, err)
	t.Cleanup(m.Stop)
	return m
}

func TestKeepsTime(t *testing.T) {
	start := time.Now()
	m := newTest(t, 2*time.Millisecond)
	for range 20 {
		require.NoError(t, m.Wait())
	}
	require.GreaterOrEqual(t, time.Since(start), 40*time.Millisecond)

	time.Sleep(60 * time.Millisecond)
	start = time.Now()
	for range 10 {
		require.NoError(t, m.Wait())
	}
	require.GreaterOrEqual(t, time.Since(start), 16*time.Millisecond, "one of the 30 missed ticks is made up for, and the next may be near")
}

func TestChangesAtOnce(t *testing.T) {
	m := newTest(t, time.Hour)
	ticked := make(chan error, 1)
	go func() { ticked <- m.Wait() }()
	require.NoError(t, m.Set(time.Millisecond))
	require.NoError(t, <-ticked)
}

func TestStop(t *testing.T) {
	m := newTest(t, time.Hour)
	ended := make(chan error, 1)
	go func() { ended <- m.Wait() }()
	time.AfterFunc(20*time.Millisecond, m.Stop) // it waits by then
	require.Error(t, <-ended)
	require.Error(t, m.Wait())
	require.Error(t, m.Set(time.Second))
	m.Stop()
}

func TestNeedsAnInterval(t *testing.T) {
	for _, interval := range []time.Duration{0, -time.Second} {
		_, err := New(interval)
		require.ErrorContains(t, err, interval.String())
	}
}

func TestAllocatesNothing(t *testing.T) {
	m := newTest(t, 100*time.Microsecond)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = m.Wait() }))
}
