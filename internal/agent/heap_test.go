package agent

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimitHeap(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for variable, expect := range map[string]int{"": heapGrowth, "GOGC": 100, "GOMEMLIMIT": 100} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			if variable != "" {
				t.Setenv(variable, "70")
			}
			debug.SetGCPercent(100)
			LimitHeap()
			require.Equal(t, expect, debug.SetGCPercent(100))
		})
	}
}

func TestLimitProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, tt := range []struct {
		environment   string
		there, expect int
	}{
		{"", 64, 2},
		{"", 2, 2},
		{"", 1, 1},
		{"7", 7, 7},
	} {
		t.Setenv("GOMAXPROCS", tt.environment)
		runtime.GOMAXPROCS(tt.there)
		LimitProcessors()
		require.Equal(t, tt.expect, runtime.GOMAXPROCS(0), "%+v", tt)
	}
}
