package reader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
)

func TestManyFilesAreCountedSeldom(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	tests := map[string]struct {
		open   *int
		age    time.Duration
		atOnce bool
		want   bool
	}{
		"never counted":       {nil, 0, false, true},
		"few":                 {new(cheapFiles - 1), time.Second, false, true},
		"many and fresh":      {new(cheapFiles), time.Second, false, false},
		"many and old":        {new(cheapFiles), limitsEvery, false, true},
		"many, by the kernel": {new(cheapFiles), time.Second, true, true},
	}
	for name, tt := range tests {
		f := files{open: tt.open, openAt: now.Add(-tt.age)}
		require.Equal(t, tt.want, f.due(now, tt.atOnce), name)
	}
}

func TestOldJVMsLackTheCounters(t *testing.T) {
	stood, under := new(processReader).safepoints(time.Now(), &hsperf.JVM{Collecting: true})
	require.Nil(t, stood)
	require.Nil(t, under)
}

// What was refused before the process was watched does not count.
func TestRefusedSinceItIsWatched(t *testing.T) {
	m := new(processReader)
	require.Nil(t, m.refusedSince(nil), "not known")
	for _, step := range []struct{ total, want uint64 }{{7, 0}, {7, 0}, {9, 2}, {1, 0}, {2, 1}} {
		require.Equal(t, step.want, *m.refusedSince(&step.total), step)
	}
}
