package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tomcatBurst is a burst on Tomcat's defaults with the handler of 5 s, and with
// clients that wait a minute in all.
func tomcatBurst(requests int, change ...func(*Input)) Input {
	in := Input{
		Requests: requests, ServiceTime: 5 * time.Second,
		Threads: 200, MaxConnections: 8192, AcceptCount: 100,
		ClientTimeout: time.Minute, ConnectTimeout: 900 * time.Millisecond,
		Syncookies: true,
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func planOf(tb testing.TB, in Input) *Plan {
	tb.Helper()
	p, err := New(in)
	require.NoError(tb, err)
	requireConsistent(tb, p)
	return p
}

// requireConsistent is what holds for every plan.
func requireConsistent(tb testing.TB, p *Plan) {
	tb.Helper()
	o := p.Outcomes
	require.Equal(tb, p.Input.Requests, o.Served+o.Failed(), "every client has one outcome")
	require.Equal(tb, o.Served == 0, p.Latency == nil)
	require.LessOrEqual(tb, p.ClientsDone, p.Duration)
	require.LessOrEqual(tb, len(p.Timeline), maxPlanPoints)
	last := p.Timeline[len(p.Timeline)-1]
	require.Equal(tb, Point{T: p.Duration, Served: o.Served, Lost: o.Failed()}, last, "at the end everything is empty")
	for i, pt := range p.Timeline {
		require.True(tb, i == 0 || pt.T > p.Timeline[i-1].T)
		require.LessOrEqual(tb, pt.AcceptQueue, p.Input.Backlog()+1)
		if p.Input.Threads > 0 {
			require.LessOrEqual(tb, pt.InService, p.Input.Threads)
		}
		for _, n := range []int{pt.InService, pt.Waiting, pt.AcceptQueue, pt.HalfOpen, pt.Retrying, pt.Served, pt.Lost} {
			require.GreaterOrEqual(tb, n, 0)
		}
		if p.Input.MaxConnections > 0 {
			require.LessOrEqual(tb, pt.InService+pt.Waiting, p.Input.MaxConnections)
		}
	}
}

func TestPlanPublishedExperiments(t *testing.T) {
	const s = time.Second
	one := func(in *Input) { in.Threads, in.MaxConnections, in.AcceptCount = 1, 1, 1 }
	threads := func(n int) func(*Input) { return func(in *Input) { in.Threads = n } }
	handler := func(d time.Duration) func(*Input) { return func(in *Input) { in.ServiceTime = d } }
	acceptCount := func(n int) func(*Input) { return func(in *Input) { in.AcceptCount = n } }
	connections := func(n int) func(*Input) { return func(in *Input) { in.MaxConnections = n } }
	somaxconn := func(n int) func(*Input) { return func(in *Input) { in.Somaxconn = n } }
	connect := func(d time.Duration) func(*Input) { return func(in *Input) { in.ConnectTimeout = d } }
	tests := []struct {
		name     string
		in       Input
		want     Outcomes
		capacity int
		duration time.Duration
		smallest Limits
	}{
		{"A1: 100 of 300 wait for the first 200", tomcatBurst(300), Outcomes{Served: 300}, 8293, 10 * s, Limits{28, 199, 100, 0}},
		{"A2", tomcatBurst(1000), Outcomes{Served: 1000}, 8293, 25 * s, Limits{91, 899, 100, 0}},
		{"A3: 75 s of work for clients that wait 60", tomcatBurst(3000), Outcomes{Served: 2200, ReadTimeout: 800}, 8293, 75 * s, Limits{273, 2899, 100, 0}},
		{"A3 with 500 threads", tomcatBurst(3000, threads(500)), Outcomes{Served: 3000}, 8293, 30 * s, Limits{273, 2899, 100, 0}},
		{"A4: the twelfth round ends as the clients give up", tomcatBurst(6000, threads(500)), Outcomes{Served: 5500, ReadTimeout: 500}, 8293, 60 * s, Limits{546, 5899, 100, 0}},
		{"A4 with 1000 threads", tomcatBurst(6000, threads(1000)), Outcomes{Served: 6000}, 8293, 30 * s, Limits{546, 5899, 100, 0}},
		{"A5: 8192 + 100 + 1 get in", tomcatBurst(10000, threads(1000)), Outcomes{Served: 8293, ConnectTimeout: 1707}, 8293, 45 * s, Limits{910, 8192, 1807, 0}},
		{"A6", tomcatBurst(10000, threads(1000), connections(20000)), Outcomes{Served: 10000}, 20101, 50 * s, Limits{910, 9899, 100, 0}},
		{"A8", tomcatBurst(10000, threads(1000), acceptCount(2000)), Outcomes{Served: 10000}, 10193, 50 * s, Limits{910, 7999, 2000, 0}},
		{"A8 on a small somaxconn", tomcatBurst(10000, threads(1000), acceptCount(2000), somaxconn(128)), Outcomes{Served: 8321, ConnectTimeout: 1679}, 8321, 45 * s, Limits{910, 7999, 2000, 0}},
		{"A9: the kernel's own one", tomcatBurst(10, one, handler(s)), Outcomes{Served: 3, ConnectTimeout: 7}, 3, 3 * s, Limits{1, 1, 8, 0}},
		{"A9 scaled", tomcatBurst(10, one, handler(500*time.Millisecond), connect(400*time.Millisecond)), Outcomes{Served: 3, ConnectTimeout: 7}, 3, 1500 * time.Millisecond, Limits{1, 1, 8, 0}},
		{"A9 with accept-count 10", tomcatBurst(10, one, acceptCount(10)), Outcomes{Served: 10}, 12, 50 * s, Limits{1, 1, 8, 0}},
		{"C1", tomcatBurst(5, threads(1), handler(3*s)), Outcomes{Served: 5}, 8293, 15 * s, Limits{1, 1, 3, 0}},
		{"C3", tomcatBurst(5, one, handler(3*s), threads(200)), Outcomes{Served: 3, ConnectTimeout: 2}, 3, 9 * s, Limits{1, 1, 3, 0}},
		{"C5", tomcatBurst(5000, handler(3*s)), Outcomes{Served: 3800, ReadTimeout: 1200}, 8293, 75 * s, Limits{264, 4899, 100, 0}},
		{"C5 with 400 threads", tomcatBurst(5000, handler(3*s), threads(400)), Outcomes{Served: 5000}, 8293, 39 * s, Limits{264, 4899, 100, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := planOf(t, tt.in)
			require.Equal(t, tt.want, p.Outcomes)
			require.Equal(t, tt.capacity, *p.Capacity)
			require.Equal(t, tt.duration, p.Duration)
			require.Equal(t, &tt.smallest, p.Smallest)
		})
	}
}

// Twelve rounds of 5 s are the client's whole minute. k6's clients that came
// within 0.2 s of each other had 2213, 2226 and 2208 responses of a real Tomcat,
// those within 0.3 s 2397, and those within 0.8 and 1 s 2400.
func TestPlanTakesTiesAsLate(t *testing.T) {
	for within, want := range map[float64]int{0.2: 2200, 0.3: 2400, 0.8: 2400, 1: 2400} {
		p := planOf(t, tomcatBurst(3000, func(in *Input) { in.Rate = 3000 / within }))
		require.Equal(t, want, p.Outcomes.Served, within)
		require.Equal(t, 3000-want, p.Outcomes.ReadTimeout, within)
		require.NotNil(t, p.Smallest, within)
		require.InDelta(t, 260, p.Smallest.Threads, 14, within) // eleven rounds, or twelve
	}
	one := planOf(t, tomcatBurst(200, func(in *Input) { in.ClientTimeout = 5*time.Second + time.Millisecond }))
	require.Equal(t, 200, one.Outcomes.Served, "who did not wait is served after the work alone")
}

// A tie is mentioned on whichever side of the timeout it is counted.
func TestPlanCountsCloseCalls(t *testing.T) {
	for within, want := range map[float64][2]int{0: {0, 200}, 0.5: {200, 0}, 1: {0, 0}} {
		p := planOf(t, tomcatBurst(3000, func(in *Input) {
			if within > 0 {
				in.Rate = 3000 / within
			}
		}))
		require.Equal(t, want, [2]int{p.JustInTime, p.JustLate}, within)
	}
	patient := planOf(t, tomcatBurst(3000, func(in *Input) { in.ClientTimeout = 0 }))
	require.Zero(t, patient.JustInTime+patient.JustLate)
}

// Send-Q is what somaxconn has left of acceptCount already: what it would leave
// today concerns the next listen().
func TestPlanOfAServerThatRuns(t *testing.T) {
	in := tomcatBurst(10000, func(in *Input) { in.Threads, in.AcceptCount, in.Somaxconn, in.InForce = 1000, 2000, 128, true })
	p := planOf(t, in)
	require.Equal(t, 10193, *p.Capacity)
	require.Equal(t, Outcomes{Served: 10000}, p.Outcomes)
	require.Equal(t, 2001, p.Stages[0].Max)
	require.Empty(t, p.Notes())
	require.Equal(t, []string{"accept-count 2,000 needs net.core.somaxconn of as much (now 128), set before the server starts."}, p.SmallestNotes())
}

// Each request has a virtual thread: the connections say how many there are.
func TestPlanWithoutThreadLimit(t *testing.T) {
	virtual := func(connections int) Input {
		return tomcatBurst(3000, func(in *Input) { in.Threads, in.MaxConnections = -1, connections })
	}
	p := planOf(t, virtual(8192))
	require.Equal(t, Outcomes{Served: 3000}, p.Outcomes)
	require.Equal(t, 5*time.Second, p.Duration)
	require.Equal(t, Stage{Name: "max_threads", Peak: 3000}, p.Stages[2])
	require.Equal(t, &Limits{0, 2899, 100, 0}, p.Smallest)
	require.Equal(t, []string{"Threads do not limit (virtual threads): max-connections says how many requests are worked on at once."}, p.SmallestNotes())

	p = planOf(t, virtual(200))
	require.Equal(t, 301, *p.Capacity)
	require.Equal(t, &Limits{0, 273, 2726, 0}, p.Smallest, "eleven rounds: a twelfth would be a tie")
	require.Empty(t, planOf(t, virtual(-1)).Notes())

	busy := planOf(t, tomcatBurst(3000, func(in *Input) {
		in.Threads, in.MaxConnections, in.AcceptCount = -1, 200, 3000
	}))
	require.Equal(t, "200 connections (threads do not limit) finish 40 requests/s, 3,000 at once need 75 s. More accept-count would not help: clients would wait elsewhere, not less.", busy.Notes()[0].Text)
}

// A request that takes almost all of its client's patience is late already
// without waiting for anything, and no limit changes that.
func TestPlanOfARequestThatIsATieAlone(t *testing.T) {
	p := planOf(t, tomcatBurst(10, func(in *Input) {
		in.ServiceTime, in.RoundTrip, in.ClientTimeout = time.Second, 100*time.Millisecond, 1200500*time.Microsecond
	}))
	require.Equal(t, 10, p.Outcomes.ReadTimeout)
	require.Nil(t, p.Smallest)
	require.Equal(t, []string{"A request alone takes all but 0.5 ms of its client's timeout, too little to count on: lengthen the timeout."}, p.SmallestNotes())
}

// A connection that is held after its response takes a place and no thread.
func TestLinger(t *testing.T) {
	in := Input{
		Threads: 20, MaxConnections: 4, AcceptCount: 100, Rate: 30, Duration: 20 * time.Second,
		ServiceTime: 100 * time.Millisecond, ClientTimeout: time.Second,
	}
	p, err := New(in)
	require.NoError(t, err)
	require.Zero(t, p.Outcomes.Failed(), "4 places serve 40 a second")
	in.Linger = 100 * time.Millisecond
	p, err = New(in)
	require.NoError(t, err)
	require.Positive(t, p.Outcomes.Failed(), "20 a second")
	require.NotNil(t, p.Smallest)
	require.LessOrEqual(t, p.Smallest.Threads, 4)
	in.Threads, in.MaxConnections, in.AcceptCount = p.Smallest.Threads, p.Smallest.MaxConnections, p.Smallest.AcceptCount
	after, err := Simulate(in)
	require.NoError(t, err)
	require.Zero(t, after.Outcomes.Failed())
}
