package demo

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// against answers each connection with the given function.
func against(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go handle(conn)
		}
	}()
	return l.Addr().String()
}

func answer(conn net.Conn, text string) {
	_, _ = http.ReadRequest(bufio.NewReader(conn))
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}

// Request timeout 200 ms where nobody answers; elsewhere a busy machine may take
// its time.
func TestBurstTellsOutcomesApart(t *testing.T) {
	for _, tc := range []struct {
		name   string
		handle func(net.Conn)
		want   Outcome
	}{
		{"ok", func(c net.Conn) { answer(c, "HTTP/1.1 204 No Content\r\n\r\n") }, OK},
		{"silent", func(net.Conn) {}, ReadTimeout},
		{"half an answer", func(c net.Conn) { answer(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal") }, Closed},
		{"no answer", func(c net.Conn) { answer(c, "") }, Closed},
		{"busy", func(c net.Conn) { answer(c, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n") }, BadAnswer},
		{"not http", func(c net.Conn) { answer(c, "SSH-2.0-OpenSSH_9.2\r\n") }, BadAnswer},
		{"reset", func(c net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}, Reset},
	} {
		t.Run(tc.name, func(t *testing.T) {
			patience := time.Minute
			if tc.want == ReadTimeout {
				patience = 200 * time.Millisecond
			}
			o, err := Burst(t.Context(), BurstOptions{
				Address: against(t, tc.handle), Clients: 3, RequestTimeout: patience,
			})
			require.NoError(t, err)
			require.Equal(t, 3, o.Of(tc.want), o.String())
			require.Equal(t, 3, o.Total())
		})
	}
}

func TestBurstRefused(t *testing.T) {
	o, err := Burst(t.Context(), BurstOptions{Address: nettest.FreeAddress(t), Clients: 5})
	require.NoError(t, err)
	require.Equal(t, 5, o.Of(Refused), o.String())
}

// Nobody accepts: backlog 1 holds two clients, the third's SYN is dropped.
// Both timeouts 3 s: on a busy machine a client may learn late that it is connected.
func TestBurstConnectTimeout(t *testing.T) {
	s, err := Listen(t.Context(), ServerOptions{Address: "127.0.0.1:0", MaxConnections: 1, AcceptCount: 1, MaxThreads: 1})
	require.NoError(t, err)
	defer s.listener.Close()
	o, err := Burst(t.Context(), BurstOptions{
		Address: s.Address().String(), Clients: 3, Rate: 20,
		ConnectTimeout: 3 * time.Second, RequestTimeout: 3 * time.Second,
	})
	require.NoError(t, err)
	require.Equal(t, 1, o.Of(ConnectTimeout), o.String())
	require.Equal(t, 2, o.Of(ReadTimeout), o.String())
}

func TestBurstEndsWithItsContext(t *testing.T) {
	address := against(t, func(net.Conn) {})
	l, err := NewLoad(BurstOptions{Address: address, Clients: 4})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Outcomes)
	go func() { done <- l.Run(ctx) }()
	eventually(t, func() bool { return l.Now().Open == 4 }, "connected")
	cancel()
	o := <-done
	require.Equal(t, 4, o.Of(Unfinished), o.String())
	require.Zero(t, l.Now().Open)
}

func TestBurstRequestsOnOneConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }))
	defer server.Close()
	o, err := Burst(t.Context(), BurstOptions{
		Address: server.Listener.Addr().String(), Clients: 2, Requests: 5, Think: time.Millisecond,
	})
	require.NoError(t, err)
	require.Equal(t, 10, o.Of(OK), o.String())
	require.Len(t, o.Latencies, 10)
}

func TestEndlessBurstEndsAsItShould(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	l, err := NewLoad(BurstOptions{Address: server.Listener.Addr().String(), Clients: 2, Requests: -1})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Outcomes)
	go func() { done <- l.Run(ctx) }()
	eventually(t, func() bool { return l.Now().Of(OK) > 20 }, "many requests")
	cancel()
	o := <-done
	require.Equal(t, o.Of(OK), o.Total(), "the end of the run is no failure: %s", o)
}

func TestBurstUploadsItsBody(t *testing.T) {
	const size = 100_000
	got := make(chan int64, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got <- n
	}))
	defer server.Close()
	o, err := Burst(t.Context(), BurstOptions{Address: server.Listener.Addr().String(), Clients: 1, Path: "/upload?ms=1", Body: size})
	require.NoError(t, err)
	require.Equal(t, 1, o.Of(OK), o.String())
	require.EqualValues(t, size, <-got)
}

func TestBurstHalfClosesAndStillGetsItsAnswer(t *testing.T) {
	address := against(t, func(c net.Conn) {
		all, _ := io.ReadAll(c) // ends only with the client's FIN
		if strings.HasSuffix(string(all), "\r\n\r\n") {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
		_ = c.Close()
	})
	o, err := Burst(t.Context(), BurstOptions{Address: address, Clients: 1, HalfClose: true, RequestTimeout: time.Minute})
	require.NoError(t, err)
	require.Equal(t, 1, o.Of(OK), o.String())
}

func TestBurstStopsInTheMiddleOfTheHeader(t *testing.T) {
	got := make(chan string, 1)
	address := against(t, func(c net.Conn) {
		all, _ := io.ReadAll(c)
		got <- string(all)
	})
	o, err := Burst(t.Context(), BurstOptions{Address: address, Clients: 1, HalfHeader: true, RequestTimeout: 500 * time.Millisecond})
	require.NoError(t, err)
	require.Equal(t, 1, o.Of(ReadTimeout), o.String())
	require.Equal(t, "GET / HTTP/1.1\r\nHost: "+address+"\r\n", <-got)
}

func TestBurstResets(t *testing.T) {
	got := make(chan error, 1)
	address := against(t, func(c net.Conn) {
		_, err := io.ReadAll(c)
		got <- err
	})
	o, err := Burst(t.Context(), BurstOptions{Address: address, Clients: 1, ResetAfter: 10 * time.Millisecond})
	require.NoError(t, err)
	require.Equal(t, 1, o.Of(Unfinished), o.String())
	require.ErrorIs(t, <-got, syscall.ECONNRESET)
}

func TestBurstReadsSlowly(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 20_000)) }))
	defer server.Close()
	o, err := Burst(t.Context(), BurstOptions{Address: server.Listener.Addr().String(), Clients: 1, ReadRate: 100_000})
	require.NoError(t, err)
	require.Equal(t, 1, o.Of(OK), o.String())
	require.Greater(t, o.Percentile(1), 150*time.Millisecond, "200 ms, and more on a busy machine")
}

func TestBurstOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	o, err := Burst(t.Context(), BurstOptions{
		Address: server.Listener.Addr().String(), Clients: 2, RequestTimeout: time.Minute,
		TLS: &tls.Config{InsecureSkipVerify: true}, // the test's own certificate
	})
	require.NoError(t, err)
	require.Equal(t, 2, o.Of(OK), o.String())
}

func TestBurstOptionsAreChecked(t *testing.T) {
	for _, tc := range []struct {
		o    BurstOptions
		want string
	}{
		{BurstOptions{Address: "localhost:80", Clients: 1}, `"localhost:80"`},
		{BurstOptions{Address: "127.0.0.1", Clients: 1}, `"127.0.0.1"`},
		{BurstOptions{Address: "127.0.0.1:80"}, "0 clients"},
		{BurstOptions{Address: "127.0.0.1:80", Clients: 1, Path: "hello"}, `"hello"`},
		{BurstOptions{Address: "127.0.0.1:80", Clients: 1, Path: "/a\r\nX: y"}, "blanks"},
		{BurstOptions{Address: "127.0.0.1:80", Clients: 1, Rate: -1}, "negative"},
		{BurstOptions{Address: "127.0.0.1:80", Clients: 1, ConnectTimeout: -1}, "connect timeout -1ns"},
		{BurstOptions{Address: "127.0.0.1:80", Clients: 1, RequestTimeout: -1}, "request timeout -1ns"},
		{BurstOptions{Address: "127.0.0.1:80", Clients: 1 << 40}, "open files"},
	} {
		_, err := Burst(t.Context(), tc.o)
		require.ErrorContains(t, err, tc.want)
	}
}
