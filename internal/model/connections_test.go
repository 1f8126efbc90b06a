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

// Clients reset while 10 of 10 threads serve them, and nothing has counted that:
// the requests that wait prove the threads busy.
func TestThreadsAreNotFreeWhileMoreRequestsWait(t *testing.T) {
	for _, tc := range []struct {
		serving, waiting, pool int
		want                   BusyKnown
	}{
		{0, 30, 10, BusyUnseen},
		{4, 7, 10, BusyUnseen},
		{4, 6, 10, BusyIsKnown},  // about to be taken
		{9, 30, 10, BusyIsKnown}, // between two requests
		{10, 30, 10, BusyIsKnown},
		{0, 30, 4, BusyIsKnown}, // threads that are still to be made
		{0, 0, 10, BusyIsKnown},
	} {
		l := Listener{Connector: &Connector{PoolThreads: &tc.pool, MaxThreads: &Setting[int]{Value: 10}}, Connections: &Connections{}}
		l.Connections.Phases[InService], l.Connections.Phases[Waiting] = tc.serving, tc.waiting
		busy, known := l.BusyThreads()
		require.Equal(t, tc.want, known, tc)
		if known == BusyIsKnown {
			require.Equal(t, tc.serving, busy, tc)
		}
	}
}
