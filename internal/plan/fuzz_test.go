package plan

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzPlan holds against any load: every client has one outcome, the limits
// are kept, and the smallest limits are the smallest.
func FuzzPlan(f *testing.F) {
	f.Add(uint16(10), uint16(0), uint16(500), uint8(1), uint8(1), uint8(1), uint16(4000), uint16(400), uint8(0), uint8(2))
	f.Add(uint16(10), uint16(0), uint16(5000), uint8(1), uint8(1), uint8(1), uint16(32000), uint16(30000), uint8(0), uint8(2))
	f.Add(uint16(40), uint16(0), uint16(5000), uint8(1), uint8(1), uint8(9), uint16(25500), uint16(20000), uint8(0), uint8(2))
	f.Add(uint16(200), uint16(300), uint16(100), uint8(7), uint8(12), uint8(5), uint16(900), uint16(0), uint8(3), uint8(7))
	f.Add(uint16(200), uint16(0), uint16(100), uint8(7), uint8(12), uint8(5), uint16(0), uint16(0), uint8(20), uint8(0))
	f.Add(uint16(200), uint16(50), uint16(100), uint8(7), uint8(0), uint8(5), uint16(300), uint16(0), uint8(20), uint8(8))
	f.Add(uint16(200), uint16(50), uint16(100), uint8(7), uint8(30), uint8(5), uint16(300), uint16(0), uint8(20), uint8(18))
	f.Add(uint16(10), uint16(0), uint16(1000), uint8(1), uint8(0), uint8(5), uint16(1404), uint16(0), uint8(201), uint8(2))
	f.Fuzz(func(t *testing.T, requests, perSecond, service uint16, threads, connections, acceptCount uint8, client, connect uint16, trip, flags uint8) {
		const ms = time.Millisecond
		in := Input{
			Requests: int(requests%300) + 1, Rate: float64(perSecond),
			ServiceTime: time.Duration(service)*ms + 1, Threads: int(threads) + 1,
			MaxConnections: int(connections), AcceptCount: int(acceptCount) + 1,
			ClientTimeout: time.Duration(client) * ms, ConnectTimeout: time.Duration(connect) * ms,
			RoundTrip:  time.Duration(trip) * ms,
			Syncookies: flags&2 != 0, AbortOnOverflow: flags&4 != 0, TimeoutFromConnect: flags&8 != 0,
			MaxSynBacklog: 64,
		}
		if in.MaxConnections == 0 {
			in.MaxConnections = -1
		}
		if flags&1 != 0 {
			in.SynRetries = SynRetriesExponential
		}
		if flags&16 != 0 {
			in.Threads = -1
		}
		p := planOf(t, in)
		if p.Smallest != nil {
			requireSmallest(t, p.Input, *p.Smallest)
		}
		if in.Syncookies {
			require.NotContains(t, p.Why, "syncookies")
		}
		require.NotEmpty(t, p.Summary())
		p.Notes()
		p.SmallestNotes()
	})
}

// requireSmallest says that the limits serve everybody, and that less of any
// of them does not.
func requireSmallest(tb testing.TB, in Input, l Limits) {
	tb.Helper()
	require.Zero(tb, turnedAway(tb, in, l), "%+v serve everybody", l)
	for _, less := range []Limits{
		{l.Threads - 1, l.MaxConnections, l.AcceptCount, 0},
		{l.Threads, l.MaxConnections - 1, l.AcceptCount, 0},
		{l.Threads, l.MaxConnections, l.AcceptCount - 1, 0},
	} {
		if less.Threads > 0 && less.MaxConnections > 0 && less.AcceptCount > 0 {
			require.NotZero(tb, turnedAway(tb, in, less), "%+v serve everybody, %+v were said to be the smallest", less, l)
		}
	}
}

func turnedAway(tb testing.TB, in Input, l Limits) int {
	tb.Helper()
	p := simulate(in.withLimits(l))
	requireConsistent(tb, p)
	return p.Outcomes.Failed() + p.Dropped.SYN + p.Dropped.ACK
}

func TestPlanIsDeterministic(t *testing.T) {
	in := tomcatBurst(2000, func(in *Input) { in.MaxConnections, in.ConnectTimeout = 300, 20*time.Second })
	require.Equal(t, planOf(t, in), planOf(t, in))
}

// Without limits and without patience nothing is lost, whatever the load.
func TestPlanWithoutLimits(t *testing.T) {
	in := tomcatBurst(5000, func(in *Input) { in.MaxConnections, in.ClientTimeout = -1, 0 })
	p := planOf(t, in)
	require.Nil(t, p.Capacity)
	require.Equal(t, Outcomes{Served: 5000}, p.Outcomes)
	require.Equal(t, 125*time.Second, p.Duration)
	require.Zero(t, p.Dropped)
	require.Equal(t, &Limits{1, 4899, 100, 0}, p.Smallest)
	require.Less(t, math.Abs(p.Latency.P50.Seconds()-65), 5.1)
}
