package watchlist

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pod whose container starts is noticed before the next list is due; for a while after that lists and
// searches are made often, because its server listens later.
func TestPodsThatArriveAreNoticed(t *testing.T) {
	logs := t.TempDir()
	l := new(Lister)
	require.False(t, l.SeesArrivals())
	require.False(t, l.Arrived())
	now := time.Now()
	l.arrivals = newArrivals(logs)
	require.False(t, l.arrivals.list(now), "the first list finds what is there")
	require.False(t, l.SeesArrivals(), "no kubelet is here")
	require.False(t, l.Arrived())

	for i, folder := range []string{"pods", "containers"} {
		require.NoError(t, os.Mkdir(filepath.Join(logs, folder), 0o700))
		require.True(t, l.Arrived(), "a kubelet has begun")
		now = now.Add(time.Minute)
		require.True(t, l.arrivals.list(now))
		require.True(t, l.SeesArrivals())
		require.False(t, l.Arrived())
		require.True(t, l.Settling(now.Add(settling-1)))
		require.False(t, l.Settling(now.Add(settling)))

		at := time.Now().Add(time.Duration(i-10) * time.Hour) // whatever the clock's steps
		require.NoError(t, os.Mkdir(filepath.Join(logs, folder, "shop_orders"), 0o700))
		require.NoError(t, os.Chtimes(filepath.Join(logs, folder), at, at))
		require.True(t, l.Arrived())
		now = now.Add(time.Minute)
		require.True(t, l.arrivals.list(now))
	}
	now = now.Add(time.Minute)
	require.False(t, l.arrivals.list(now), "nothing has come since")
}

func TestSearchesAreMadeOftenWhilePodsArrive(t *testing.T) {
	now := time.Now()
	c := Search{at: now, cost: 10 * time.Millisecond}
	for after, due := range map[time.Duration][2]bool{
		100 * time.Millisecond: {false, false}, 500 * time.Millisecond: {false, true}, 4 * time.Second: {false, true}, 5 * time.Second: {true, true},
	} {
		require.Equal(t, due, [2]bool{c.due(now.Add(after), false), c.due(now.Add(after), true)}, after)
	}
}
