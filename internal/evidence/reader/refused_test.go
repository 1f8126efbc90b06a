package reader

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What was refused before the process was watched does not count.
func TestRefusedSinceItIsWatched(t *testing.T) {
	m := new(processReader)
	require.Nil(t, m.refusedSince(nil), "not known")
	for _, step := range []struct{ total, want uint64 }{{7, 0}, {7, 0}, {9, 2}, {1, 0}, {2, 1}} {
		require.Equal(t, step.want, *m.refusedSince(&step.total), step)
	}
}
