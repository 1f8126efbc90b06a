package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A count in the midst of comings and goings is no more than there can be; one far beyond says
// that the limit is another one.
func TestTaken(t *testing.T) {
	l := &Listener{Connections: &Connections{Accepted: 21}}
	for most, want := range map[int]int{20: 20, 21: 21, 10: 21, -1: 21} {
		l.Connector = &Connector{MaxConnections: &Setting[int]{Value: most}}
		n, known := l.Taken()
		require.True(t, known)
		require.Equal(t, want, n, most)
	}
	_, known := new(Listener).Taken()
	require.False(t, known)
}
