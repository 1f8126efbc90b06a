package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// A shape is a load whose steady state is known from the server itself. The
// clients have no timeouts: nobody is lost in any of these.
type shape struct {
	name    string
	clients demo.BurstOptions
	steady  func(now rig.Truth) bool // the load has built up
	// off is how many connections are in another phase than this load puts
	// them in.
	off func(rig.Connections) int
}

const (
	poolSize = 60
	slots    = 1000
)

func shapes() []shape {
	return []shape{
		{
			name:    "keep-alive with think time",
			clients: demo.BurstOptions{Clients: 100, Rate: 25, Path: hello(2 * time.Second), Requests: -1, Think: 2 * time.Second},
			steady:  func(now rig.Truth) bool { return now.Connections == 101 },
			off:     func(c rig.Connections) int { return c.Waiting + c.ClientClosed },
		},
		{
			name:    "keep-alive back to back",
			clients: demo.BurstOptions{Clients: 50, Rate: 100, Path: hello(time.Second), Requests: -1},
			steady:  func(now rig.Truth) bool { return now.Busy == 50 },
			off:     func(c rig.Connections) int { return 50 - c.InService },
		},
		{
			name:    "close", // 56 at a time: 2 % of 49 would be none
			clients: demo.BurstOptions{Clients: 1000, Rate: 14, Path: hello(4 * time.Second)},
			steady:  func(now rig.Truth) bool { return now.Busy >= 55 },
			off:     func(c rig.Connections) int { return c.Accepted - c.InService },
		},
		{
			name:    "slow handler",
			clients: demo.BurstOptions{Clients: 100, Path: hello(6 * time.Second)},
			steady:  func(now rig.Truth) bool { return now == rig.Truth{Busy: poolSize, Connections: 101} },
			off:     func(c rig.Connections) int { return max(poolSize-c.InService, 100-poolSize-c.Waiting) },
		},
		{
			name:    "large upload, being read",
			clients: demo.BurstOptions{Clients: 50, Path: "/upload?ms=0", Body: 4 << 20, BodyRate: 512 << 10},
			steady:  func(now rig.Truth) bool { return now.Busy == 50 },
			off:     func(c rig.Connections) int { return 50 - c.InService },
		},
		{
			name:    "large upload, worked on",
			clients: demo.BurstOptions{Clients: 50, Path: "/upload?ms=6000", Body: 1 << 20},
			steady:  func(now rig.Truth) bool { return now.Busy == 50 },
			off:     func(c rig.Connections) int { return 50 - c.InService },
		},
		{
			name:    "bodies that the handler does not read, keep-alive",
			clients: demo.BurstOptions{Clients: 50, Path: hello(3 * time.Second), Body: 512 << 10, Requests: -1},
			steady:  func(now rig.Truth) bool { return now.Busy == 50 },
			off:     func(c rig.Connections) int { return 50 - c.InService },
		},
		{
			name:    "slow reader",
			clients: demo.BurstOptions{Clients: 50, Path: "/download?bytes=100000000", ReadRate: 100_000},
			steady:  func(now rig.Truth) bool { return now.Busy == 50 },
			off:     func(c rig.Connections) int { return 50 - c.Sending },
		},
		{
			name:    "half-closing clients",
			clients: demo.BurstOptions{Clients: 50, Path: hello(6 * time.Second), HalfClose: true},
			steady:  func(now rig.Truth) bool { return now.Busy == 50 },
			off:     func(c rig.Connections) int { return 50 - c.ClientClosed },
		},
	}
}

// Connections by phase agree with Tomcat's own counts within 2 % whenever it
// is steady. That it stood still between two readings of Actuator is no proof
// that it did so in between: of nine looks two may fall into a movement.
func TestLongPhasesAgreeWithTomcat(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: poolSize, MaxConnections: slots}, func(o *rig.TomcatOptions) {
		o.Env = []string{"TOMCAT_MAX_KEEP_ALIVE_REQUESTS=-1"}
	})
	warm(t, server)
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			quiet(t, server)
			s.clients.Address = server.Address()
			crowd := clients(t, s.clients)
			nettest.Within(t, time.Minute, "the load has built up", func() bool { return s.steady(truth(t, server)) })
			time.Sleep(300 * time.Millisecond)
			looks := make([]look, 9)
			for i := range looks {
				looks[i] = compare(t, server, s)
			}
			crowd.leave()
			require.Zero(t, crowd.Now().Lost(), crowd.Now().String())
			slices.SortFunc(looks, func(a, b look) int { return a.wrong - b.wrong })
			seventh := looks[6]
			require.LessOrEqual(t, float64(seventh.wrong), .02*float64(seventh.connections.Accepted)+.01, "%+v", looks)
		})
	}
}

// look is one snapshot of tcpdiag between two readings of Actuator.
type look struct {
	before, after rig.Truth
	connections   rig.Connections
	wrong         int // connections that are not where Tomcat says, by the worst of the counts
}

// compare takes one snapshot while Tomcat's figures stand still, to one.
func compare(t *testing.T, server *rig.Tomcat, s shape) look {
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
		return look{before, after, c, max(
			apart(busy, before.Busy, after.Busy),
			apart(c.Accepted, before.Accepted(slots), after.Accepted(slots)),
			c.Unclassified,
			s.off(c),
		)}
	}
	require.FailNow(t, "the server is never steady")
	return look{}
}

func near(a, b int) bool { return a-b <= 1 && b-a <= 1 }

// apart is how far got is from the range of two truths.
func apart(got, a, b int) int { return max(min(a, b)-got, got-max(a, b), 0) }
