package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// behind is a load on a server whose requests each wait for one of ten backend
// connections: 10 / 2 s = 5 requests/s, whatever the threads.
func behind(threads int) Input {
	return Input{
		Requests: 100, ServiceTime: time.Millisecond, Threads: threads, MaxConnections: 8192, AcceptCount: 100,
		BackendConnections: 10, BackendTime: 2 * time.Second,
	}
}

// More threads than the pool has connections change nothing.
func TestBackendLimits(t *testing.T) {
	few, many := planOf(t, behind(40)), planOf(t, behind(150))
	require.Equal(t, 100, few.Outcomes.Served)
	require.InDelta(t, 20, few.Duration.Seconds(), 0.01)
	require.InDelta(t, few.Duration.Seconds(), many.Duration.Seconds(), 0.01)
	require.InDelta(t, 5, few.perSecond(), 1e-9)

	more := behind(40)
	more.BackendConnections = 20
	require.InDelta(t, 10, planOf(t, more).Duration.Seconds(), 0.01, "a pool of twice the size halves it")

	threads := behind(5)
	require.InDelta(t, 5/2.001, planOf(t, threads).perSecond(), 1e-9, "here the threads are what limits")
}

// The note names the pool, and the stages show it full.
func TestBackendIsNamed(t *testing.T) {
	in := behind(40)
	in.ClientTimeout = 10 * time.Second
	p := planOf(t, in)
	require.Positive(t, p.Outcomes.ReadTimeout)
	require.Equal(t, string(model.CauseConnectionPool), p.Notes()[0].Code)
	require.Contains(t, p.Notes()[0].Text, "more threads would only wait for one")
	pool := p.Stages[3]
	require.Equal(t, "connection_pool", pool.Name)
	require.Equal(t, 10, pool.Peak)
	require.Positive(t, pool.FullFor)
}

// The smallest settings serve everybody, and one connection less does not.
func TestBackendSmallest(t *testing.T) {
	in := behind(40)
	in.ClientTimeout = 10 * time.Second
	p := planOf(t, in)
	require.NotNil(t, p.Smallest)
	require.Equal(t, 25, p.Smallest.BackendConnections, "four rounds of 2 s end in time, five do not")
	try := in.withLimits(*p.Smallest)
	try.BackendConnections = p.Smallest.BackendConnections
	require.Zero(t, planOf(t, try).Outcomes.Failed())
	try.BackendConnections--
	require.Positive(t, planOf(t, try).Outcomes.Failed())
	try.BackendConnections++
	try.Threads--
	require.Positive(t, planOf(t, try).Outcomes.Failed())
}

func TestBackendInputErrors(t *testing.T) {
	for name, change := range map[string]func(*Input){
		"backend-connections": func(in *Input) { in.BackendConnections = -1 },
		"backend-time":        func(in *Input) { in.BackendTime = 0 },
	} {
		in := behind(40)
		change(&in)
		var wrong *InputError
		require.ErrorAs(t, in.Validate(), &wrong)
		require.Equal(t, name, wrong.Name)
	}
	in := behind(40)
	in.BackendConnections = 0
	require.ErrorContains(t, in.Validate(), "goes with --backend-connections")
}

// More come at once than the accept queue holds: of each group as many as it has room for, before accept() is called.
func TestClientsThatComeTogether(t *testing.T) {
	in := Input{
		Rate: 100, Duration: 10 * time.Second, Together: 100, LateAcceptor: true, ConnectTimeout: 900 * time.Millisecond,
		ServiceTime: 5 * time.Millisecond, Threads: 50, MaxConnections: 8192, AcceptCount: 9,
	}
	require.Equal(t, Outcomes{Served: 100, ConnectTimeout: 900}, planOf(t, in).Outcomes, "ten groups, ten of each")
	in.AcceptCount = 99
	require.Equal(t, 1000, planOf(t, in).Outcomes.Served)
	in.AcceptCount, in.Together = 9, 1
	require.Equal(t, 1000, planOf(t, in).Outcomes.Served, "one after the other")
}

// Four threads and four places in front of them: 300 ms each, 13.3 of 20 a second are served and the others rejected at once.
func TestRequestsThatTheExecutorRejects(t *testing.T) {
	in := Input{
		Rate: 20, Duration: time.Minute, ServiceTime: 300 * time.Millisecond, Threads: 4, MaxQueue: 4, MaxConnections: 8192, AcceptCount: 100,
	}
	p := planOf(t, in)
	require.InDelta(t, 806, p.Outcomes.Served, 8)
	require.Equal(t, 1200, p.Outcomes.Served+p.Outcomes.Reset)
	require.LessOrEqual(t, p.Latency.Max, 600*time.Millisecond, "the longest wait is for all four")
	in.Threads = 8
	require.Equal(t, 1200, planOf(t, in).Outcomes.Served)
	in.Threads, in.MaxQueue = 4, 0
	require.Equal(t, 1200, planOf(t, in).Outcomes.Served, "without a limit they wait")
}
