package e2e

import (
	"context"
	"crypto/tls"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// usedPorts numbers the servers: each gets ports of its own, so that no
// socket of an earlier test is on them.
var usedPorts atomic.Int32

// fourDigits keeps the thread names whole ("http-nio-8110-e"), fiveDigits
// cuts their tail off ("http-nio-18110-").
func fourDigits() int { return 8100 + 10*int(usedPorts.Add(1)) }
func fiveDigits() int { return 10000 + fourDigits() }

// tomcat starts a server for the test; change sees its defaults.
func tomcat(t *testing.T, port int, limits rig.Limits, change ...func(*rig.TomcatOptions)) *rig.Tomcat {
	t.Helper()
	o := rig.TomcatOptions{Artifacts: artifacts(t), Port: port, ManagementPort: port + 1, Limits: limits}
	for _, c := range change {
		c(&o)
	}
	log, err := os.Create(t.TempDir() + "/tomcat.log")
	require.NoError(t, err)
	o.Log = log
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the server's log:\n%s", text)
		}
		_ = log.Close()
	})
	server, err := rig.StartTomcat(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	return server
}

// truth is what Tomcat itself says now.
func truth(t *testing.T, server *rig.Tomcat) rig.Truth {
	t.Helper()
	now, err := server.Truth(t.Context())
	require.NoError(t, err)
	return now
}

// quiet waits until the server serves nobody.
func quiet(t *testing.T, server *rig.Tomcat) {
	t.Helper()
	nettest.Within(t, time.Minute, "nobody is served", func() bool { return truth(t, server) == rig.Truth{Connections: 1} })
}

// warm makes the server load the classes of its first request, then waits
// until it is quiet. Client timeouts: connect 5 s, request 20 s.
func warm(t *testing.T, server *rig.Tomcat) {
	t.Helper()
	o := demo.BurstOptions{
		Address: server.Address(), Clients: 4, Rate: 20, Path: hello(0),
		ConnectTimeout: 5 * time.Second, RequestTimeout: 20 * time.Second,
	}
	if server.TLS {
		o.TLS = unverified()
	}
	require.Equal(t, 4, clients(t, o).outcomes(t, time.Minute).Of(demo.OK))
	quiet(t, server)
}

// unverified accepts the test's own certificate.
func unverified() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// crowd are clients at work.
type crowd struct {
	*demo.Load
	done   chan struct{}
	cancel context.CancelFunc
}

// clients start to connect at once; they are closed when the test ends.
func clients(t *testing.T, o demo.BurstOptions) *crowd {
	t.Helper()
	load, err := demo.NewLoad(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{Load: load, done: make(chan struct{}), cancel: cancel}
	go func() { defer close(c.done); load.Run(ctx) }()
	t.Cleanup(c.leave)
	return c
}

// leave makes the clients close their connections.
func (c *crowd) leave() {
	c.cancel()
	<-c.done
}

// outcomes waits for every client's.
func (c *crowd) outcomes(t *testing.T, limit time.Duration) demo.Outcomes {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(limit):
		require.FailNow(t, "clients without an outcome after "+limit.String(), c.Now().String())
	}
	o := c.Now().Outcomes
	require.Zero(t, o.Of(demo.Local), "%v", o.LocalError)
	return o
}

// connected waits until n clients are, or have been and are served already.
func (c *crowd) connected(t *testing.T, n int) {
	t.Helper()
	nettest.Within(t, time.Minute, strconv.Itoa(n)+" clients connected", func() bool {
		now := c.Now()
		return now.Open+now.Of(demo.OK) >= n
	})
}

// as is who runs tcpdiag; nil is root.
type as = *syscall.Credential

func nobody() as { return &syscall.Credential{Uid: 65534, Gid: 65534} }

// snapshot runs `tcpdiag snapshot --output json`.
func snapshot(t *testing.T, user as, args ...string) *rig.Document {
	t.Helper()
	return snapshotLater(t, user, args...)()
}

// snapshotWithCPU is snapshot, taken again while its verdict is that the server's
// threads wait for a CPU: on a busy machine they do.
func snapshotWithCPU(t *testing.T, port int, args ...string) *rig.Document {
	t.Helper()
	var d *rig.Document
	nettest.Within(t, 2*time.Minute, "a CPU for the server", func() bool {
		d = snapshot(t, nil, args...)
		return listener(t, d, port).Verdict.Cause != "cpu_saturated"
	})
	return d
}

// snapshotLater starts it, and answers its document when asked.
func snapshotLater(t *testing.T, user as, args ...string) func() *rig.Document {
	t.Helper()
	type result struct {
		out, errs []byte
		code      int
		err       error
	}
	a := artifacts(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	done := make(chan result, 1)
	go func() {
		var r result
		r.out, r.errs, r.code, r.err = a.Run(ctx, user, append([]string{"snapshot", "--output", "json"}, args...)...)
		done <- r
	}()
	return func() *rig.Document {
		t.Helper()
		r := <-done
		require.NoError(t, r.err)
		require.Zero(t, r.code, "%s", r.errs)
		d, err := rig.Decode(r.out)
		require.NoError(t, err, "%s", r.out)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("tcpdiag snapshot %v said:\n%s%s", args, r.out, r.errs)
			}
		})
		return d
	}
}

// on names the server and its limits the way a user does who knows them.
func on(server *rig.Tomcat) []string {
	return flags(server.Port, server.Limits)
}

func flags(port int, l rig.Limits) []string {
	args := []string{"--port", strconv.Itoa(port)}
	for name, value := range map[string]int{"--max-threads": l.Threads, "--max-connections": l.MaxConnections} {
		if value != 0 {
			args = append(args, name, strconv.Itoa(value))
		}
	}
	return args
}

// hello is the path of a request that takes this long.
func hello(d time.Duration) string {
	return "/hello?ms=" + strconv.FormatInt(d.Milliseconds(), 10)
}

// listener is the document's only entry for the server.
func listener(t *testing.T, d *rig.Document, port int) *rig.Listener {
	t.Helper()
	l := d.On(port)
	require.NotNil(t, l, "no entry for port %d", port)
	if l.Connections != nil {
		require.Equal(t, l.Connections.Accepted, l.Connections.Sum(), "the phases sum to accepted")
	}
	return l
}

// counters reads the namespace's own.
func counters(t *testing.T) map[string]int {
	t.Helper()
	c, err := rig.Counters()
	require.NoError(t, err)
	return c
}

// startAgent runs an agent until the test ends; it must then end well, and by itself
// (at what time is what `make prove PROOF=attacks` measures).
func startAgent(t *testing.T, args ...string) *rig.Agent {
	t.Helper()
	agent, err := artifacts(t).StartAgent(t.Context(), fiveDigits(), args...)
	require.NoError(t, err)
	t.Cleanup(func() {
		took, err := agent.Stop()
		require.NoError(t, err)
		require.Less(t, took, time.Minute, "graceful shutdown")
	})
	return agent
}

// scansEverySecond waits until the agent does: the first scan is the most expensive, and
// the longer it took the longer is the time to the next.
func scansEverySecond(t *testing.T, agent *rig.Agent) {
	t.Helper()
	nettest.Within(t, time.Minute, "the agent scans every second", func() bool {
		every, ok := agentMetrics(t, agent).Find("tcpdiag_scan_interval_seconds")
		return ok && every <= 1
	})
}

// agentSnapshot is what /api/v1/snapshot says now.
func agentSnapshot(t *testing.T, agent *rig.Agent) *rig.Document {
	t.Helper()
	body, err := agent.Get(t.Context(), "/api/v1/snapshot")
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent said:\n%s", body)
		}
	})
	d, err := rig.Decode(body)
	require.NoError(t, err)
	return d
}

// agentMetrics is what /metrics says now.
func agentMetrics(t *testing.T, agent *rig.Agent) rig.Series {
	t.Helper()
	series, err := agent.Metrics(t.Context())
	require.NoError(t, err)
	return series
}
