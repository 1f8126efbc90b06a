package connections

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A burst comes between two answers of Actuator: what it said before is not said of now.
func TestActuatorsFiguresOfTheTimeBefore(t *testing.T) {
	begin := time.Now()
	serving := func(n int) *Found {
		f := &Found{}
		f.Counts.Accepted, f.Counts.Phases[model.InService] = n, n
		return f
	}
	asked := func(busy int, at time.Time) *model.Connector {
		return &model.Connector{
			MaxThreads: &model.Setting[int]{Value: 10}, PoolThreads: new(10), BusyThreads: new(busy), BusyAt: at,
		}
	}
	after := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }

	var fs Figures
	var id model.ListenerID
	idle := asked(0, begin)
	require.Same(t, idle, fs.Current(id, idle, serving(0), after(.5)))
	now := fs.Current(id, idle, serving(4), after(1.2))
	require.Nil(t, now.BusyThreads, "the connections show more")
	require.Nil(t, fs.Current(id, idle, serving(4), after(1.2)).BusyThreads, "asked twice")
	require.Equal(t, 0, *idle.BusyThreads, "what discovery keeps stays")
	require.Same(t, idle, fs.Current(id, idle, serving(0), after(4)), "nor less")
	require.Same(t, idle, fs.Current(id, idle, serving(12), after(4.5)), "more than there are threads: nothing is known of them")

	// Asynchronous requests are in service, and Actuator has no busy thread before, nor after.
	require.Nil(t, fs.Current(id, idle, serving(8), after(4.8)).BusyThreads)
	async := asked(0, after(5))
	require.Same(t, async, fs.Current(id, async, serving(8), after(5.5)))
	require.Same(t, async, fs.Current(id, async, serving(9), after(9)))
	fs.Retain(nil)
	require.Same(t, async, fs.Current(id, async, serving(8), after(5.5)), "a snapshot has no walk before")

	require.Nil(t, fs.Current(id, nil, serving(1), begin))
}
