package model

import (
	"testing"
	"time"

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

// Threads that stand behind their answers are on no connection, and idle ones of a pool that has grown wait with a timeout.
func TestNoThreadIsIdle(t *testing.T) {
	held := func(change func(*Listener, *Workers)) (int, BusyKnown) {
		w := &Workers{Threads: 40, Parked: 39, Writing: 1}
		l := &Listener{
			Connector:   &Connector{PoolThreads: new(40), MaxThreads: &Setting[int]{Value: 40}, MinSpareThreads: &Setting[int]{Value: 10}},
			Connections: &Connections{Unread: 2 * time.Second}, Process: &Process{Downstream: &Downstream{Workers: w}},
		}
		l.Connections.Phases[Waiting] = 12
		change(l, w)
		return l.BusyThreads()
	}
	busy, known := held(func(*Listener, *Workers) {})
	require.Equal(t, BusyIsKnown, known)
	require.Equal(t, 40, busy)
	for name, change := range map[string]func(*Listener, *Workers){
		"idle ones":               func(_ *Listener, w *Workers) { w.Timed = 29 },
		"some idle ones":          func(_ *Listener, w *Workers) { w.Timed = 7 },
		"the poller is held":      func(_ *Listener, w *Workers) { w.PollerBlocked = true },
		"it has ended":            func(l *Listener, _ *Workers) { l.Connector.WithoutPoller = true },
		"a moment":                func(l *Listener, _ *Workers) { l.Connections.Unread = 900 * time.Millisecond },
		"nobody waits":            func(l *Listener, _ *Workers) { l.Connections.Phases[Waiting] = 0 },
		"a pool that is kept":     func(l *Listener, _ *Workers) { l.Connector.MinSpareThreads.Value = 40 },
		"what it keeps not known": func(l *Listener, _ *Workers) { l.Connector.MinSpareThreads = nil },
		"not all were read":       func(_ *Listener, w *Workers) { w.Threads = 39 },
	} {
		busy, known := held(change)
		require.Equal(t, BusyIsKnown, known, name)
		require.Zero(t, busy, name)
	}
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
