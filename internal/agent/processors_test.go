package agent

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

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
