package agent

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

func TestLinger(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for name, tt := range map[string]struct {
		delay time.Duration
		end   bool // before it is over
		want  time.Duration
	}{
		"no delay":      {0, false, 0},
		"a delay":       {20 * time.Second, false, 20 * time.Second},
		"ended earlier": {20 * time.Second, true, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, signal := context.WithCancel(t.Context())
				lingering, end := Linger(ctx, tt.delay, log)
				defer end()
				time.Sleep(time.Hour)
				require.NoError(t, lingering.Err(), "nobody told it to end")
				told := time.Now()
				signal()
				if tt.end {
					time.AfterFunc(5*time.Second, end)
				}
				<-lingering.Done()
				require.Equal(t, tt.want, time.Since(told))
			})
		})
	}
}

// What asks for readiness sends no more work; health is another matter.
func TestNotReadyWhileStopping(t *testing.T) {
	var s stage
	s.snap.Store(losing(time.Now()))
	o := options(time.Now())
	stopping := make(chan struct{})
	o.Stopping = stopping
	h := serving(&s, o)
	require.Equal(t, http.StatusOK, get(t, h, "/-/ready").Code)
	close(stopping)
	ready := get(t, h, "/-/ready")
	require.Equal(t, http.StatusServiceUnavailable, ready.Code)
	require.Contains(t, ready.Body.String(), "is stopping")
	require.Equal(t, http.StatusOK, get(t, h, "/-/healthy").Code)
	require.Contains(t, get(t, h, "/metrics").Body.String(), "tcpdiag_listener_status")
}

// As many pages may be open as there are connections to a port: the 65th gets a
// clear answer, and a scrape gets in in spite of them.
func TestOpenPagesLeaveRoomForScrapes(t *testing.T) {
	var s stage
	s.snap.Store(losing(time.Now()))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := newServer(t.Context(), serving(&s, options(time.Now())))
	go func() { _ = server.Serve(newBoundedListener(listener, testLedger())) }()
	t.Cleanup(func() { _ = server.Close() })
	client := &http.Client{Transport: &http.Transport{}, Timeout: 2 * time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(path string) int {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp.StatusCode
	}
	for range maxConnections {
		require.Equal(t, http.StatusOK, ask("/api/v1/stream"))
	}
	require.Equal(t, http.StatusServiceUnavailable, ask("/api/v1/stream"))
	for range 3 {
		require.Equal(t, http.StatusOK, ask("/metrics"))
	}
}

// Who has all the open pages gives them up for others', one for each of theirs.
func TestStreamsAreShared(t *testing.T) {
	ledger := testLedger()
	s := streams{shares.NewSlots(maxStreams, ledger.Resource("streams"))}
	var ended, began atomic.Int32
	h := s.serve(func(_ http.ResponseWriter, r *http.Request) {
		began.Add(1)
		<-r.Context().Done()
		ended.Add(1)
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	ask := func(address string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/stream", nil)
		r.RemoteAddr = address
		h(w, r)
		return w.Code
	}
	open := func(address string) {
		before := began.Load()
		all.Go(func() { ask(address) })
		require.Eventually(t, func() bool { return began.Load() > before }, time.Minute, time.Millisecond)
	}
	for range maxStreams {
		open("10.0.0.1:1")
	}
	require.Equal(t, http.StatusServiceUnavailable, ask("10.0.0.1:1"))
	for range 3 {
		open("10.0.0.2:1")
	}
	require.Eventually(t, func() bool { return ended.Load() == 3 }, time.Minute, time.Millisecond)
	cancel()
	all.Wait()
	require.Equal(t, []model.Share{{Resource: "streams", Refused: 1, Evicted: 3}}, ledger.Counts())
}

// A stream that asks with a body takes no place, nor does one that is refused leave the count.
func TestStreamsWithBodies(t *testing.T) {
	var s stage
	s.snap.Store(losing(time.Now()))
	l, address := boundedServer(t, serving(&s, options(time.Now())))
	for range 5 * maxConnections {
		c := dial(t, address)
		_, err := io.WriteString(c, "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
		require.NoError(t, err)
		require.LessOrEqual(t, l.held(), maxConnections)
	}
	require.Eventually(t, func() bool { return l.held() == 0 }, time.Minute, time.Millisecond)
	for range maxStreams {
		c := dial(t, address)
		_, err := io.WriteString(c, "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		t.Cleanup(func() { // a stream's body has no end: closed alone it is read for ever
			_ = c.Close()
			_ = response.Body.Close()
		})
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	require.Eventually(t, func() bool { return l.held() == 0 }, time.Minute, time.Millisecond, "they count apart")
	c := dial(t, address)
	_, err := io.WriteString(c, "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, 1, l.held(), "it is still one of the port's")
}

// What is recorded is listed, reported and handed out; what is not there is not found.
func TestIncidentsAreServed(t *testing.T) {
	var s stage
	now := time.Now()
	s.snap.Store(losing(now))
	o := options(now)
	recorder := newRecorder(&s, nil, o)
	page, err := newPage(s.Snapshot, recorder, o)
	require.NoError(t, err)
	h := handler(s.Snapshot, new(moduleWait).reason, newReloader(&s, o), recorder, page, testLedger(), o)
	require.Contains(t, get(t, h, "/api/v1/incidents").Body.String(), `"incidents": []`)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- recorder.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-done) })
	require.Eventually(t, func() bool { l := recorder.List(); return len(l) == 1 && l[0].Frames > 0 }, time.Minute, 5*time.Millisecond)
	id := recorder.List()[0].ID
	require.Contains(t, get(t, h, "/api/v1/incidents").Body.String(), id)
	require.Contains(t, get(t, h, "/api/v1/incidents/"+id).Body.String(), `"schema": "tcpdiag.incident/v1"`)
	require.Contains(t, get(t, h, "/").Body.String(), `href="incidents/`+id)
	report := get(t, h, "/incidents/"+id)
	require.Contains(t, report.Body.String(), "What happened")
	require.NotContains(t, report.Header().Get("Content-Security-Policy"), "unsafe")
	require.Contains(t, get(t, h, "/api/v1/incidents/"+id+"/recording").Body.String(), `"tcpdiag.recording/v2"`)
	go func() { _ = describe(ctx, &s, recorder, testLedger()) }()
	require.Eventually(t, func() bool {
		return strings.Contains(get(t, h, "/metrics").Body.String(), "\ntcpdiag_incidents_total 1\n")
	}, time.Minute, 5*time.Millisecond)
	for _, path := range []string{"/api/v1/incidents/none", "/incidents/..%2f..%2fetc%2fpasswd", "/api/v1/incidents/000009-20260102T030405Z-8080/recording"} {
		require.Equal(t, http.StatusNotFound, get(t, h, path).Code, path)
	}
}
