package demo

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serve runs a server until the test ends and checks that it ends well.
func serve(t *testing.T, o ServerOptions) *Server {
	t.Helper()
	o.Address = "127.0.0.1:0"
	s, err := Listen(t.Context(), o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			require.NoError(t, err)
			require.Zero(t, s.Stats().Connections, "every slot is given back")
		case <-time.After(time.Minute):
			t.Error("the server does not end")
		}
	})
	return s
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 5*time.Millisecond, what)
}

// start runs a load until its clients are through or the test ends.
func start(t *testing.T, o BurstOptions) (*Load, <-chan Outcomes) {
	t.Helper()
	l, err := NewLoad(o)
	require.NoError(t, err)
	done := make(chan Outcomes, 1)
	go func() { done <- l.Run(t.Context()) }()
	return l, done
}

func TestServerOptionsAreChecked(t *testing.T) {
	good := ServerOptions{Address: "127.0.0.1:0", MaxConnections: 1, AcceptCount: 1, MaxThreads: 1}
	for _, tc := range []struct {
		change func(*ServerOptions)
		want   string
	}{
		{func(o *ServerOptions) { o.MaxConnections = 0 }, "max-connections 0"},
		{func(o *ServerOptions) { o.AcceptCount = -1 }, "accept-count -1"},
		{func(o *ServerOptions) { o.MaxThreads = 0 }, "max-threads 0"},
		{func(o *ServerOptions) { o.ServiceTime = -time.Second }, "service time -1s"},
		{func(o *ServerOptions) { o.KeepAlive = -time.Second }, "keep-alive -1s"},
		{func(o *ServerOptions) { o.Address = "127.0.0.1:70000" }, "70000"},
	} {
		o := good
		tc.change(&o)
		_, err := Listen(t.Context(), o)
		require.ErrorContains(t, err, tc.want)
	}
}

func TestPortInUse(t *testing.T) {
	s := serve(t, ServerOptions{MaxConnections: 1, AcceptCount: 1, MaxThreads: 1})
	_, err := Listen(t.Context(), ServerOptions{
		Address: s.Address().String(), MaxConnections: 1, AcceptCount: 1, MaxThreads: 1,
	})
	require.ErrorContains(t, err, "address already in use")
}

func TestThreadsLimitWhatIsServedAtOnce(t *testing.T) {
	s := serve(t, ServerOptions{MaxConnections: 20, AcceptCount: 10, MaxThreads: 3, ServiceTime: 600 * time.Millisecond})
	_, done := start(t, BurstOptions{Address: s.Address().String(), Clients: 9, RequestTimeout: time.Minute})
	eventually(t, func() bool {
		now := s.Stats() // those that came late on a busy machine may find others served
		return now.Busy == 3 && now.Connections+now.Served == 9
	}, "3 busy, 9 accepted")
	o := <-done
	require.Equal(t, 9, o.Of(OK), o.String())
	require.GreaterOrEqual(t, o.Percentile(1), 1800*time.Millisecond, "three rounds")
	eventually(t, func() bool { return s.Stats() == ServerStats{Served: 9} }, "all closed")
}

func TestKeepAliveHoldsTheConnectionAndNoThread(t *testing.T) {
	s := serve(t, ServerOptions{MaxConnections: 4, AcceptCount: 1, MaxThreads: 1, KeepAlive: time.Minute})
	conn, err := net.Dial("tcp", s.Address().String())
	require.NoError(t, err)
	defer conn.Close()
	in := bufio.NewReader(conn)
	for i := range 3 {
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		answer, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, "hello\n", string(body))
		eventually(t, func() bool { return s.Stats() == ServerStats{Connections: 1, Served: i + 1} }, "idle")
	}
}

func TestIdleKeepAliveConnectionIsClosed(t *testing.T) {
	s := serve(t, ServerOptions{MaxConnections: 4, AcceptCount: 1, MaxThreads: 1, KeepAlive: 20 * time.Millisecond})
	conn, err := net.Dial("tcp", s.Address().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadAll(conn) // until the server closes
	require.NoError(t, err)
	eventually(t, func() bool { return s.Stats().Connections == 0 }, "slot given back")
}

func TestPipelinedRequestsAreBothAnswered(t *testing.T) {
	s := serve(t, ServerOptions{MaxConnections: 4, AcceptCount: 1, MaxThreads: 1, KeepAlive: 50 * time.Millisecond})
	conn, err := net.Dial("tcp", s.Address().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, 2, s.Stats().Served)
}

func TestClientsThatLeaveGiveTheirSlotBack(t *testing.T) {
	for name, say := range map[string]string{
		"nothing":  "",
		"garbage":  "\x16\x03\x01\x02\x00 not http\r\n\r\n",
		"too much": "GET / HTTP/1.1\r\nX: " + string(make([]byte, requestLimit)),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, ServerOptions{MaxConnections: 1, AcceptCount: 1, MaxThreads: 1})
			conn, err := net.Dial("tcp", s.Address().String())
			require.NoError(t, err)
			_, _ = io.WriteString(conn, say) // the server may hang up first
			require.NoError(t, conn.Close())
			_, done := start(t, BurstOptions{Address: s.Address().String(), Clients: 1, RequestTimeout: time.Minute})
			require.Equal(t, 1, (<-done).Of(OK), "the only slot is free again")
		})
	}
}

func TestServerEndsWithRequestsInService(t *testing.T) {
	s, err := Listen(t.Context(), ServerOptions{
		Address: "127.0.0.1:0", MaxConnections: 3, AcceptCount: 5, MaxThreads: 1, ServiceTime: time.Hour,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	_, outcomes := start(t, BurstOptions{Address: s.Address().String(), Clients: 5, RequestTimeout: time.Minute})
	eventually(t, func() bool { return s.Stats() == ServerStats{Connections: 3, Busy: 1} }, "full")
	cancel()
	require.NoError(t, <-done)
	o := <-outcomes
	require.Equal(t, 5, o.Of(Reset)+o.Of(Closed), o.String())
	require.Zero(t, s.Stats().Connections)
}
