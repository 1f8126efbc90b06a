package agent

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// As many pages may be open as there are connections to a port: the 65th gets a
// clear answer, and a scrape gets in in spite of them.
func TestOpenPagesLeaveRoomForScrapes(t *testing.T) {
	var s stage
	s.snap.Store(losing(time.Now()))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := newServer(t.Context(), serving(&s, options(time.Now())))
	go func() { _ = server.Serve(newBoundedListener(listener)) }()
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

// What is recorded is listed, reported and handed out; what is not there is not found.
func TestIncidentsAreServed(t *testing.T) {
	var s stage
	now := time.Now()
	s.snap.Store(losing(now))
	o := options(now)
	recorder := newRecorder(s.Snapshot, o)
	page, err := newPage(s.Snapshot, recorder, o)
	require.NoError(t, err)
	h := handler(s.Snapshot, new(moduleWait).reason, newReloader(o), recorder, page, o)
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
	require.Contains(t, get(t, h, "/api/v1/incidents/"+id+"/recording").Body.String(), `"tcpdiag.recording/v1"`)
	require.Contains(t, get(t, h, "/metrics").Body.String(), "tcpdiag_incidents_total 1")
	for _, path := range []string{"/api/v1/incidents/none", "/incidents/..%2f..%2fetc%2fpasswd", "/api/v1/incidents/000009-20260102T030405Z-8080/recording"} {
		require.Equal(t, http.StatusNotFound, get(t, h, path).Code, path)
	}
}
