package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// A shape is a load whose steady state is known from the server itself. The
// clients have no timeouts: nobody is lost in any of these.
type shape struct {
	name    string
	clients demo.BurstOptions
	steady  func(now Truth) bool          // the load has built up
	also    func(*testing.T, Connections) // what is so beside the general rules
}

const poolSize = 60

func shapes() []shape {
	return []shape{
		{
			name:    "keep-alive with think time",
			clients: demo.BurstOptions{Clients: 100, Rate: 25, Path: hello(2 * time.Second), Requests: -1, Think: 2 * time.Second},
			steady:  func(now Truth) bool { return now.Connections == 101 },
			also: func(t *testing.T, c Connections) {
				require.Zero(t, c.Waiting+c.ClientClosed+c.Unclassified)
				require.InDelta(t, 50, c.Idle, 12, "half of them think")
			},
		},
		{
			name:    "keep-alive back to back",
			clients: demo.BurstOptions{Clients: 50, Path: hello(100 * time.Millisecond), Requests: -1},
			steady:  func(now Truth) bool { return now.Busy == 50 },
			also:    func(t *testing.T, c Connections) { require.InDelta(t, 50, c.InService, 1) },
		},
		{
			name:    "close",
			clients: demo.BurstOptions{Clients: 3000, Rate: 100, Path: hello(500 * time.Millisecond)},
			steady:  func(now Truth) bool { return now.Busy >= 49 },
			also:    func(t *testing.T, c Connections) { require.InDelta(t, c.Accepted, c.InService, 1) },
		},
		{
			name:    "slow handler",
			clients: demo.BurstOptions{Clients: 100, Path: hello(6 * time.Second)},
			steady:  func(now Truth) bool { return now == Truth{Busy: poolSize, Connections: 101} },
			also: func(t *testing.T, c Connections) {
				require.Equal(t, poolSize, c.InService)
				require.Equal(t, 100-poolSize, c.Waiting)
			},
		},
		{
			name:    "large upload, being read",
			clients: demo.BurstOptions{Clients: 50, Path: "/upload?ms=0", Body: 4 << 20, BodyRate: 512 << 10},
			steady:  func(now Truth) bool { return now.Busy == 50 },
			also:    func(t *testing.T, c Connections) { require.InDelta(t, 50, c.InService, 1) },
		},
		{
			name:    "large upload, worked on",
			clients: demo.BurstOptions{Clients: 50, Path: "/upload?ms=5000", Body: 1 << 20},
			steady:  func(now Truth) bool { return now.Busy == 50 },
			also:    func(t *testing.T, c Connections) { require.InDelta(t, 50, c.InService, 1) },
		},
		{
			name:    "slow reader",
			clients: demo.BurstOptions{Clients: 50, Path: "/download?bytes=100000000", ReadRate: 100_000},
			steady:  func(now Truth) bool { return now.Busy == 50 },
			also:    func(t *testing.T, c Connections) { require.Equal(t, 50, c.Sending) },
		},
		{
			name:    "half-closing clients",
			clients: demo.BurstOptions{Clients: 50, Path: hello(6 * time.Second), HalfClose: true},
			steady:  func(now Truth) bool { return now.Busy == 50 },
			also:    func(t *testing.T, c Connections) { require.Equal(t, 50, c.ClientClosed) },
		},
	}
}

// Connections by phase agree with Tomcat's own counts within 2 % whenever it
// stands still between two looks of Actuator with tcpdiag's in between.
func TestPhasesAgreeWithTomcat(t *testing.T) {
	server := tomcat(t, fourDigits(), Limits{Threads: poolSize, MaxConnections: 1000}, func(o *TomcatOptions) {
		o.Env = []string{"TOMCAT_MAX_KEEP_ALIVE_REQUESTS=-1"}
	})
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			quiet(t, server)
			s.clients.Address = server.Address()
			crowd := clients(t, s.clients)
			within(t, 10*time.Second, "the load has built up", func() bool { return s.steady(truth(t, server)) })
			time.Sleep(300 * time.Millisecond)
			for range 5 {
				compare(t, server, s)
			}
			crowd.leave()
			require.Zero(t, crowd.Now().Lost(), crowd.Now().String())
		})
	}
}

// compare holds one look of tcpdiag against the server's figures before and
// after it, once these are within 1 of each other.
func compare(t *testing.T, server *Tomcat, s shape) {
	t.Helper()
	for range 50 {
		before := truth(t, server)
		d := snapshot(t, nil, append(on(server), "--interval", "0")...)
		after := truth(t, server)
		if !near(before.Busy, after.Busy) || !near(before.Connections, after.Connections) {
			continue
		}
		c := *listener(t, d, server.Port).Connections
		busy := c.InService + c.Sending + c.ClientClosed
		requireWithin(t, busy, before.Busy, after.Busy, "busy")
		requireWithin(t, c.Accepted, before.Accepted(1000), after.Accepted(1000), "accepted")
		require.Zero(t, c.Unclassified)
		s.also(t, c)
		return
	}
	require.FailNow(t, "the server is never steady")
}

func near(a, b int) bool { return a-b <= 1 && b-a <= 1 }

// requireWithin allows 2 % on either side of the two truths.
func requireWithin(t *testing.T, got, a, b int, what string) {
	t.Helper()
	low, high := float64(min(a, b)), float64(max(a, b))
	require.GreaterOrEqual(t, float64(got), low-.02*low, "%s: Tomcat says %d, then %d", what, a, b)
	require.LessOrEqual(t, float64(got), high+.02*high, "%s: Tomcat says %d, then %d", what, a, b)
}
