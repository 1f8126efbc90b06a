package attacks

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// hog is what a connection sends to have the port for itself.
type hog struct {
	request string
	endless bool // one request after the other, and all answers are read; else it asks once and reads slowly
	leaves  bool // with the first bytes of the answer
	deaf    bool // reads nothing, and stays beside the next

	every time.Duration // between its beginning and that of the next, where it does not last longer
}

// hogs are what one address may do: each connection asks, keeps what it has for as long as it is left, and
// is opened again.
func hogs() map[string]hog {
	const health = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n"
	return map[string]hog{
		"health without the body":     {request: "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"},
		"pages without the body":      {request: "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"},
		"pages that stay open":        {request: "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		"pages opened again":          {request: "GET /api/v1/stream?process=NUMBER HTTP/1.1\r\nHost: localhost\r\n\r\n", leaves: true},
		"snapshots that nobody reads": {request: "GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		"answers that nobody reads":   {request: "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", deaf: true},
		"headers that drip":           {request: "GET / HTTP/1.1\r\nX: "},
		"health without end":          {request: strings.Repeat(health, 100), endless: true},
	}
}

// TestLongPort: one address keeps as many connections open as it can, and asks for
// more, for a minute each in the proof; others' scrapes, probes and pages are answered.
func TestLongPort(t *testing.T) {
	nettest.Root(t)
	program, last := build(t), 4*time.Second
	if everything() {
		last = time.Minute
	}
	header(t)
	for name, h := range hogs() {
		attempt(t, "root", name, func(t *testing.T) row { return h.run(t, program, last) })
	}
}

// run lets 200 connections of one address work against a friend of another one.
func (h hog) run(t *testing.T, program string, last time.Duration) row {
	t.Helper()
	s := newScene(t, viewer{name: "root"}, program, "--all")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var opened atomic.Int64
	s.besiege(ctx, t, h, 200, 1, &opened)
	asked, answered := s.friendAsks(ctx, s.addresses(t, 1)[0], friendly{last: last, least: 11, every: 100 * time.Millisecond})
	cancel()
	require.Less(t, s.descriptors(t), 250, "descriptors of the agent")
	require.GreaterOrEqual(t, answered, 0.99*float64(asked), "of %d", asked)
	return s.finish(t, fmt.Sprintf("%.0f of %d answers for another address beside %d connections", answered, asked, opened.Load()))
}

// besiege has connections of that many addresses to the agent's port.
func (s *scene) besiege(ctx context.Context, t *testing.T, h hog, connections, addresses int, opened *atomic.Int64) {
	t.Helper()
	from := s.addresses(t, addresses)
	for i := range connections {
		go s.keepOpening(ctx, from[i%addresses], h, opened)
	}
}

// addresses are further ones of the agent's network namespace.
func (s *scene) addresses(t *testing.T, n int) (all []netip.Addr) {
	t.Helper()
	for range n {
		s.clients++
		all = append(all, netip.AddrFrom4([4]byte{10, 9, 0, s.clients}))
		out, err := s.ns.Command("ip", "address", "add", all[len(all)-1].String()+"/32", "dev", "lo").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return all
}

// descriptors is how many the agent has open.
func (s *scene) descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	require.NoError(t, err)
	return len(open)
}

// keepOpening opens a connection, sends the request, waits until it is closed or ten seconds
// are over, and begins again.
func (s *scene) keepOpening(ctx context.Context, from netip.Addr, h hog, opened *atomic.Int64) {
	for ctx.Err() == nil {
		began := time.Now()
		c, err := s.dialFrom(ctx, from)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		n := opened.Add(1)
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		h.use(ctx, c, strings.ReplaceAll(h.request, "NUMBER", strconv.FormatInt(n, 10)))
		if !h.deaf {
			_ = c.Close()
		}
		time.Sleep(h.every - time.Since(began))
	}
}

func (h hog) use(ctx context.Context, c net.Conn, request string) {
	_, err := io.WriteString(c, request)
	switch {
	case h.leaves:
		_, _ = c.Read(make([]byte, 100))
	case h.deaf:
		go func() { // for as long as one such attack lasts: an hour of them is more descriptors than a process has
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			_ = c.Close()
		}()
		time.Sleep(time.Second)
	case h.endless:
		go func() { _, _ = io.Copy(io.Discard, c) }()
		for err == nil && ctx.Err() == nil { // more than is read by far, and this process is not the machine's only one
			time.Sleep(10 * time.Millisecond)
			_, err = io.WriteString(c, request)
		}
	default:
		for err = nil; err == nil && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			_, err = c.Read(make([]byte, 100)) // as slowly as that
		}
	}
}

func (s *scene) dialFrom(ctx context.Context, from netip.Addr) (c net.Conn, err error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), Timeout: friendWaits()}
	doErr := netns.Do(s.ns.Path(), func() error {
		c, err = d.DialContext(ctx, "tcp", agentAddress)
		return err
	})
	return c, doErr
}

// friendWaits is how long a friend waits: two seconds where the bounds of time are held, else until a busy machine
// comes to it.
func friendWaits() time.Duration {
	if everything() {
		return 2 * time.Second
	}
	return answered
}

// friendly is how another address asks: for that long, and at least so often on a slow machine.
type friendly struct {
	last, every, waits time.Duration
	least              int
	user               string
}

// friendAsks asks, each time on a new connection, and counts the answers.
func (s *scene) friendAsks(ctx context.Context, from netip.Addr, f friendly) (asked int, answered float64) {
	end := time.Now().Add(f.last)
	client := &http.Client{Timeout: cmp.Or(f.waits, friendWaits()), Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := s.dialFrom(ctx, from)
			return s.secured(c), err
		},
	}}
	for tick := time.Tick(f.every); ; asked++ {
		path := []string{"/-/healthy", "/metrics", "/api/v1/snapshot", "/", "/api/v1/stream"}[asked%5]
		request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://"+agentAddress+path, http.NoBody)
		if err != nil {
			return asked, answered
		}
		request.SetBasicAuth(cmp.Or(f.user, "u"), "right")
		if response, err := client.Do(request); err == nil {
			if path == "/api/v1/stream" { // it has no end
				_, err = response.Body.Read(make([]byte, 1))
			} else {
				_, err = io.Copy(io.Discard, response.Body)
			}
			_ = response.Body.Close()
			if err == nil && response.StatusCode == http.StatusOK {
				answered++
			}
		}
		if asked+1 >= f.least && time.Now().After(end) {
			return asked + 1, answered
		}
		select {
		case <-ctx.Done():
			return asked + 1, answered
		case <-tick:
		}
	}
}
