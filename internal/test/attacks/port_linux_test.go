package attacks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// hogs are what one address may send to have the port for itself: each connection
// asks, keeps what it has for as long as it is left, and is opened again.
func hogs() map[string]string {
	return map[string]string{
		"health without the body":     "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n",
		"pages without the body":      "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n",
		"pages that stay open":        "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"snapshots that nobody reads": "GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"headers that drip":           "GET / HTTP/1.1\r\nX: ",
	}
}

// TestLongPort: one address keeps as many connections open as it can, and asks for
// more, for a minute each in make attacks; others' scrapes, probes and pages are answered.
func TestLongPort(t *testing.T) {
	nettest.Root(t)
	program, last := build(t), 4*time.Second
	if everything() {
		last = time.Minute
	}
	header(t)
	for name, request := range hogs() {
		attempt(t, "root", name, func(t *testing.T) row { return hog(t, program, request, last) })
	}
}

// hog lets 200 connections of one address work against a friend of another one.
func hog(t *testing.T, program, request string, last time.Duration) row {
	t.Helper()
	s := newScene(t, viewer{name: "root"}, program, "--all")
	greedy, friend := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.2")
	for _, a := range []netip.Addr{greedy, friend} {
		out, err := s.ns.Command("ip", "address", "add", a.String()+"/32", "dev", "lo").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), last)
	defer cancel()
	var opened atomic.Int64
	for range 200 {
		go s.keepOpening(ctx, greedy, request, &opened)
	}
	asked, answered := s.friendAsks(ctx, friend)
	require.Greater(t, asked, 10)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	require.NoError(t, err)
	require.Less(t, len(open), 250, "descriptors of the agent")
	require.GreaterOrEqual(t, answered, 0.99*float64(asked), "of %d", asked)
	r := s.finish(t, fmt.Sprintf("%.0f of %d answers for another address beside %d connections", answered, asked, opened.Load()))
	return r
}

// keepOpening opens a connection, sends the request, waits until it is closed or ten seconds
// are over, and begins again.
func (s *scene) keepOpening(ctx context.Context, from netip.Addr, request string, opened *atomic.Int64) {
	for ctx.Err() == nil {
		c, err := s.dialFrom(ctx, from)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		opened.Add(1)
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(c, request)
		for err = nil; err == nil && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			_, err = c.Read(make([]byte, 100)) // as slowly as that
		}
		_ = c.Close()
	}
}

func (s *scene) dialFrom(ctx context.Context, from netip.Addr) (c net.Conn, err error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), Timeout: 2 * time.Second}
	doErr := netns.Do(s.ns.Path(), func() error {
		c, err = d.DialContext(ctx, "tcp", agentAddress)
		return err
	})
	return c, doErr
}

// friendAsks asks ten times a second, each time on a new connection, and counts the
// answers that come within two seconds.
func (s *scene) friendAsks(ctx context.Context, from netip.Addr) (asked int, answered float64) {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dialFrom(ctx, from) },
	}}
	for tick := time.Tick(100 * time.Millisecond); ; asked++ {
		path := []string{"/-/healthy", "/metrics", "/api/v1/snapshot", "/", "/api/v1/stream"}[asked%5]
		request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://"+agentAddress+path, http.NoBody)
		if err != nil {
			return asked, answered
		}
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
		select {
		case <-ctx.Done():
			return asked + 1, answered
		case <-tick:
		}
	}
}
