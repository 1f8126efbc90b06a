package assemble

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// While the queue stays full the reading before a packet names its cause at once;
// one from before it was full says nothing.
func TestReadingBeforeADropStands(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(before time.Duration) time.Time { return now.Add(-before) }
	tests := map[string]struct {
		full, read time.Time
		known      bool
	}{
		"full before the reading":      {at(5 * time.Second), at(time.Second), true},
		"full after the reading":       {at(time.Second / 2), at(time.Second), false},
		"not full":                     {time.Time{}, at(time.Second), false},
		"a reading of long before":     {at(5 * time.Second), at(2 * time.Second), false},
		"the reading is of the moment": {at(time.Second / 2), now, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := &witness{
				now: now.Add(10 * time.Millisecond), full: tt.full, t: reading.DefaultThresholds(),
				listener: &model.Listener{
					AcceptQueue: &model.AcceptQueue{Length: 6, Limit: 5},
					Connector:   &model.Connector{MaxConnections: &model.Setting[int]{Value: 20}},
					Connections: &model.Connections{At: tt.read, Accepted: 20, Phases: [model.NumPhases]int{model.InService: 20}},
				},
			}
			c, e, known := w.cause(losses.Drop{Since: now, Until: now})
			require.Equal(t, tt.known, known)
			if known {
				require.Equal(t, model.CauseMaxConnections, c)
				require.Equal(t, model.EvidencePhases, e)
			}
		})
	}
}

// For how long nobody has been accepted is known from the first reading with the same first in the queue.
func TestQueueStandsSince(t *testing.T) {
	queue := func(cookies ...uint64) *connections.Found {
		f := &connections.Found{}
		for i, cookie := range cookies {
			f.Add(&sockdiag.Socket{State: sockdiag.Established, Cookie: cookie, HasInfo: true, Info: sockdiag.TCPInfo{LastDataSent: time.Minute - time.Duration(i)*time.Second}})
		}
		f.Finish(time.Time{}, 0, false)
		return f
	}
	second := func(n int) time.Time { return time.Unix(1000+int64(n), 0) }
	var s firstInQueue
	first := queue(1, 2, 3)
	require.Nil(t, s.read(first, second(0), false), "one reading alone")
	require.Nil(t, s.read(first, second(0), false))
	require.Equal(t, time.Second, *s.read(queue(1, 2, 3, 4), second(1), false))
	latest := queue(1, 2, 3, 4, 5)
	require.Equal(t, 31*time.Second, *s.read(latest, second(31), false))
	require.Equal(t, 31*time.Second, *s.read(latest, second(31), false), "the same reading in another snapshot")
	require.Zero(t, *s.read(queue(2, 3, 4, 5), second(32), false), "one was accepted")
	require.Equal(t, time.Second, *s.read(queue(2, 3, 4, 5), second(33), false))
}

// What the samples show of the accept queue is of the listener that stands there, and not of the one before it.
func TestAcceptedByTheSamples(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	opt := Options{Thresholds: reading.DefaultThresholds(), Every: time.Second, Looping: true}
	queue := func(fell, still time.Time) *model.AcceptQueue {
		var state *State
		var snap *model.Snapshot
		for _, seconds := range []int{1, 4} {
			f := full(begin, seconds)
			r := &f.Namespaces[0].Sampled[0]
			r.Fell, r.Still = fell, still
			state, snap = Snapshot(state, f, opt)
		}
		return snap.Listeners[0].AcceptQueue
	}
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	q := queue(at(3), at(3))
	require.Equal(t, time.Second, *q.TakenAgo)
	require.Equal(t, time.Second, *q.StandsFor)
	q = queue(at(-1), at(-1))
	require.Nil(t, q.TakenAgo)
	require.Equal(t, 4*time.Second, *q.StandsFor, "since it was first listed")
	q = queue(time.Time{}, time.Time{})
	require.Nil(t, q.TakenAgo)
	require.Nil(t, q.StandsFor)
}
