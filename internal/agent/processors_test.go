package agent

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProcessorsFollowTheLengthOfScans(t *testing.T) {
	p := processors{now: 2, several: 2}
	for _, step := range []struct {
		scan time.Duration
		want int
	}{
		{1500 * time.Microsecond, 2}, // neither long nor short: as it is
		{900 * time.Microsecond, 1},
		{1500 * time.Microsecond, 1},
		{2100 * time.Microsecond, 2},
		{time.Second, 2},
		{1500 * time.Microsecond, 2},
		{0, 1},
	} {
		require.Equal(t, step.want, p.after(step.scan, 10*time.Millisecond), "%v", step.scan)
	}
}

func TestProcessorsAreSet(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	t.Setenv("GOMAXPROCS", "")
	scanned := Processors()
	require.Equal(t, min(2, before), runtime.GOMAXPROCS(0))
	scanned(100*time.Microsecond, 10*time.Millisecond)
	require.Equal(t, 1, runtime.GOMAXPROCS(0))
	scanned(time.Second, 10*time.Millisecond)
	require.Equal(t, min(2, before), runtime.GOMAXPROCS(0), "samples beside a long scan")
	scanned(time.Second, time.Minute)
	require.Equal(t, 1, runtime.GOMAXPROCS(0), "another interval")
}

func TestProcessorsLeaveTheEnvironmentsNumber(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Setenv("GOMAXPROCS", "7")
	Processors()(time.Microsecond, time.Millisecond)
	require.Equal(t, before, runtime.GOMAXPROCS(0))
}
