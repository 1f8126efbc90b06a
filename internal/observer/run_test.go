package observer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDearScansAreRare(t *testing.T) {
	s := &Sampler{opt: Options{ScanInterval: time.Second}}
	require.Equal(t, time.Second, s.pause(time.Millisecond))
	require.Equal(t, time.Second, s.self.ScanInterval)
	for _, cost := range []time.Duration{18 * time.Millisecond, 27 * time.Millisecond, time.Second} {
		pause := s.pause(cost)
		require.LessOrEqual(t, cost.Seconds()/(cost+pause).Seconds(), scanShare, cost)
		require.Equal(t, pause, s.self.ScanInterval, "told")
	}
}
