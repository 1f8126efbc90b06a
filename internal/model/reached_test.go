package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReached(t *testing.T) {
	for most, want := range map[int]int{1: 1, 7: 7, 8: 7, 49: 48, 100: 98, 8192: 8029} {
		require.Equal(t, want, ConnectionsReached(most), "maxConnections %d", most)
	}
	require.False(t, MostlyIdle(50, 100))
	require.True(t, MostlyIdle(51, 100))
	require.False(t, FilesReached(979, 1000))
	require.True(t, FilesReached(980, 1000))
}
