package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// The issue's own example: threads 4, max-connections 10, accept-count 5, and
// 14 clients of a handler that takes 5 s. Client timeouts: connect 10 s,
// request 30 s; nobody reaches them.
func TestLongFunnel(t *testing.T) {
	for name, port := range map[string]func() int{"four digits": fourDigits, "five digits": fiveDigits} {
		t.Run(name, func(t *testing.T) {
			server := tomcat(t, port(), rig.Limits{Threads: 4, MaxConnections: 10, AcceptCount: 5})
			inside, queued, came := fourteen(t, server)
			for user, credential := range map[string]as{"root": nil, "nobody": nobody()} {
				d := snapshot(t, credential, append(on(server), "--interval", "0")...)
				t.Run(user, func(t *testing.T) { requireFunnel(t, d, server, came) })
				unaided := snapshot(t, credential, "--port", strconv.Itoa(server.Port), "--interval", "0")
				t.Run(user+" without flags", func(t *testing.T) { requireNoWrongLimit(t, unaided, server) })
				if credential != nil {
					requireNamedMissing(t, d)
				}
			}
			require.Equal(t, rig.Truth{Busy: 4, Connections: 10}, truth(t, server), "nothing moved meanwhile")
			require.Equal(t, 10, inside.outcomes(t, time.Minute).Of(demo.OK))
			require.Equal(t, 4, queued.outcomes(t, time.Minute).Of(demo.OK))
		})
	}
}

// fourteen lets ten clients in and then four queue, which came between the two
// times.
func fourteen(t *testing.T, server *rig.Tomcat) (inside, queued *stages, came [2]time.Time) {
	t.Helper()
	warm(t, server)
	o := demo.BurstOptions{
		Address: server.Address(), Clients: 10, Path: hello(5 * time.Second),
		ConnectTimeout: 10 * time.Second, RequestTimeout: 30 * time.Second,
	}
	inside = fill(t, o, 10, 0)
	nettest.Within(t, time.Minute, "10 accepted, 4 served", func() bool {
		return truth(t, server) == rig.Truth{Busy: 4, Connections: 10}
	})
	o.Clients = 4
	came[0] = time.Now()
	queued = fill(t, o, 0, 4)
	came[1] = time.Now()
	time.Sleep(1500 * time.Millisecond) // a wait that can be distinguished from none
	return inside, queued, came
}

func requireFunnel(t *testing.T, d *rig.Document, server *rig.Tomcat, came [2]time.Time) {
	t.Helper()
	l := listener(t, d, server.Port)
	c := l.Connections
	require.NotNil(t, c)
	require.Equal(t, 10, c.Accepted)
	require.Equal(t, 4, c.InService)
	require.Equal(t, 6, c.Waiting)
	q := l.AcceptQueue
	require.NotNil(t, q)
	require.Equal(t, 4, q.Length)
	require.Equal(t, 5, q.Limit)
	require.Equal(t, 6, q.Capacity)
	require.False(t, q.Full)
	require.NotNil(t, q.OldestWaitSeconds)
	require.LessOrEqual(t, *q.OldestWaitSeconds, d.Time.Sub(came[0]).Seconds()+1)
	require.GreaterOrEqual(t, *q.OldestWaitSeconds, d.Time.Sub(came[1]).Seconds()-1)
	require.Equal(t, new(16), l.Capacity)
	require.Nil(t, q.Peak, "one look has no peak")
	require.Nil(t, l.Losses, "one look has no losses")
	require.NotNil(t, l.Process)
	require.Equal(t, server.PID, l.Process.PID)
	require.Equal(t, "java", l.Process.Comm)
	require.NotNil(t, l.Process.OpenFiles)
	require.NotNil(t, l.Process.OpenFilesLimit)
	require.NotNil(t, l.Connector)
	require.Equal(t, "tomcat", l.Connector.Server)
	require.Equal(t, "http-nio", l.Connector.Protocol)
	require.Equal(t, new(4), l.Connector.PoolThreads)
	require.Equal(t, "max_connections", l.Verdict.Cause)
	require.Equal(t, "saturated", l.Verdict.Status)
}

// requireNoWrongLimit: limits come from the environment, which not everyone
// may read. A default in the jar is then no answer.
func requireNoWrongLimit(t *testing.T, d *rig.Document, server *rig.Tomcat) {
	t.Helper()
	l := listener(t, d, server.Port)
	require.NotNil(t, l.Connector)
	for name, limit := range map[string]struct {
		got  *rig.Setting
		want int
	}{
		"max_threads":     {l.Connector.MaxThreads, server.Threads},
		"max_connections": {l.Connector.MaxConnections, server.MaxConnections},
		"accept_count":    {l.Connector.AcceptCount, server.AcceptCount},
	} {
		if limit.got != nil {
			require.Equal(t, limit.want, limit.got.Value, "%s from %s", name, limit.got.Source)
		}
	}
}

// requireNamedMissing: what user nobody cannot see is named, with how to get it.
func requireNamedMissing(t *testing.T, d *rig.Document) {
	t.Helper()
	var named []string
	for _, u := range d.Unavailable {
		require.NotEmpty(t, u.What)
		require.NotEmpty(t, u.Why, u.What)
		require.NotEmpty(t, u.How, u.What)
		named = append(named, u.What)
	}
	require.Contains(t, strings.Join(named, "; "), "environ")
}

// A burst of 40 against the empty server, seen by a snapshot that looks for five
// seconds. (All 40 within a millisecond would find the six places of the queue
// taken before the acceptor has woken up, and fewer would get in.) Client
// timeouts: connect 500 ms, below the first SYN retry at 1 s, so that each client
// turned away is one dropped SYN; request 5 min.
func TestBurstWithinTheInterval(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 4, MaxConnections: 10, AcceptCount: 5})
	warm(t, server)
	before := counters(t)
	result := snapshotLater(t, nil, append(on(server), "--interval", "5s")...)
	time.Sleep(3 * time.Second) // its first snapshot is over
	burst := fill(t, demo.BurstOptions{
		Address: server.Address(), Clients: 40, Path: hello(5 * time.Minute),
		ConnectTimeout: 500 * time.Millisecond, RequestTimeout: 5 * time.Minute,
	}, 10, 6)
	d := result()
	after := counters(t)

	l := listener(t, d, server.Port)
	require.Equal(t, 6, l.AcceptQueue.Length)
	require.True(t, l.AcceptQueue.Full)
	require.Equal(t, new(6), l.AcceptQueue.Peak)
	require.Equal(t, 10, l.Connections.Accepted)

	drops := after["ListenDrops"] - before["ListenDrops"]
	require.GreaterOrEqual(t, drops, 24, "40 clients, 16 places")
	require.NotNil(t, l.Losses)
	require.Equal(t, drops, l.Losses.DroppedPackets+l.Losses.Unattributed, "the namespace's own counter")
	require.Equal(t, drops, l.Losses.DroppedPackets, "this listener's, all of them")
	require.Equal(t, drops, d.NetNS[0].Delta["ListenDrops"])
	require.Equal(t, after["ListenOverflows"]-before["ListenOverflows"], d.NetNS[0].Delta["ListenOverflows"])
	require.Equal(t, drops, byCause(l.Losses, "max_connections"))
	require.Equal(t, "losing", l.Verdict.Status)
	require.Equal(t, "max_connections", l.Verdict.Cause)
	require.Equal(t, []string{"accept_queue", "max_connections", "max_threads"}, l.Verdict.Chain)

	require.Equal(t, 24, burst.lost.outcomes(t, time.Minute).Of(demo.ConnectTimeout))
	for _, c := range burst.placed {
		require.Equal(t, 1, c.Now().Open, "16 got in")
	}
}

func byCause(l *rig.Losses, cause string) int {
	sum := 0
	for _, by := range l.By {
		if by.Cause == cause {
			sum += by.Packets
		}
	}
	return sum
}
