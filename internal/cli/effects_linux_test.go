package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// crowd are clients that keep coming, each with a connection of its own.
type crowd struct {
	mu           sync.Mutex
	served, lost int
	slowest      time.Duration
}

// The load of the test below: ten clients a second that wait 2 s for their connection.
const (
	crowdEvery   = 100 * time.Millisecond
	crowdConnect = 2 * time.Second
)

// come sends clients for a while; those of its first part are not counted, as what is
// measured is how things are while they keep coming.
func (c *crowd) come(ns *nettest.NS, address string, lasts, uncounted time.Duration) {
	var all sync.WaitGroup
	start := time.Now()
	for time.Since(start) < lasts {
		counts := time.Since(start) > uncounted
		all.Go(func() { ns.Do(func() { c.client(address, counts) }) })
		time.Sleep(crowdEvery)
	}
	all.Wait()
}

func (c *crowd) client(address string, counts bool) {
	began := time.Now()
	err := ask(address)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !counts:
	case err != nil:
		c.lost++
	default:
		c.served++
		c.slowest = max(c.slowest, time.Since(began))
	}
}

func ask(address string) error {
	conn, err := net.DialTimeout("tcp", address, crowdConnect)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	_, err = bufio.NewReader(conn).ReadString('\n')
	return err
}

// serve is Tomcat's way of admitting clients, in a namespace of its own, with requests of a
// second.
func serve(t *testing.T, threads int) (ns *nettest.NS, address string) {
	t.Helper()
	ns = nettest.Namespace(t)
	var server *demo.Server
	ns.Do(func() {
		var err error
		server, err = demo.Listen(t.Context(), demo.ServerOptions{
			Address: "127.0.0.1:8080", MaxThreads: threads, MaxConnections: 20, AcceptCount: 5, ServiceTime: time.Second,
		})
		require.NoError(t, err)
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return ns, server.Address().String()
}

// What a change is predicted to do is what it does, and what is said of the present is what
// the clients of that time say.
func TestLongPredictionComesTrue(t *testing.T) {
	ns, address := serve(t, 4)
	var now, then crowd
	gone := make(chan struct{})
	go func() { defer close(gone); now.come(ns, address, 55*time.Second, 15*time.Second) }()
	effect := predicted(t, ns, "max_threads")
	<-gone
	m := regexp.MustCompile(`^with (\d+) threads all are served, the slowest after ([0-9.]+) s; now (\d+) % are turned away$`).FindStringSubmatch(effect)
	require.NotNil(t, m, effect)
	number := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		return f
	}
	ns, address = serve(t, int(number(m[1])))
	late := lateness(t)
	then.come(ns, address, 12*time.Second, 3*time.Second)
	t.Logf("predicted: %s; measured: of %d now %d turned away; with the change of %d %d, the slowest after %v",
		effect, now.served+now.lost, now.lost, then.served+then.lost, then.lost, then.slowest)
	require.InEpsilon(t, 100*float64(now.lost)/float64(now.served+now.lost), number(m[3]), .2)
	require.Zero(t, then.lost)
	require.Greater(t, then.slowest.Seconds(), .8*number(m[2]))
	require.Less(t, (then.slowest - late()).Seconds(), 1.2*number(m[2]))
}

// lateness is by how much a busy machine may have delayed a request since it was asked: each request passes
// some goroutines of the client and the server, one after the other.
func lateness(t *testing.T) func() time.Duration {
	const hops, pause = 5, 10 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	most := make(chan time.Duration)
	go func() {
		longest := time.Duration(0)
		for ctx.Err() == nil {
			began := time.Now()
			time.Sleep(pause)
			longest = max(longest, time.Since(began)-pause)
		}
		most <- longest
	}()
	return func() time.Duration { stop(); return hops * <-most }
}

// predicted is what the advised change of a limit is said to do.
func predicted(t *testing.T, ns *nettest.NS, limit string) string {
	t.Helper()
	cmd := tcpdiag(ns, "watch", "--output", "json", "--port", "8080", "--max-threads", "4", "--max-connections", "20")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	defer time.AfterFunc(52*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
	setting := map[string]string{"max_threads": "maxThreads"}[limit]
	for docs := json.NewDecoder(out); ; {
		var s api.Snapshot
		require.NoError(t, docs.Decode(&s), "nothing was predicted in time")
		for _, step := range s.Listeners[0].Verdict.Answer.Do {
			if step.Setting == setting && step.Effect != "" {
				return step.Effect
			}
		}
	}
}
