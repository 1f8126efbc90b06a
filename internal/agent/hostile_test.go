package agent

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
)

// boundedServer serves h the way the agent does.
func boundedServer(t *testing.T, h http.Handler) (*boundedListener, string) {
	t.Helper()
	l := newBoundedListener(listenLocal(t))
	server := newServer(t.Context(), h)
	done := make(chan error, 1)
	go func() { done <- serveOn(l, server) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, <-done)
	})
	return l, l.Addr().String()
}

func listenLocal(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (l *boundedListener) held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// However many connections are opened and left, there are never more than the
// bound, and a request is answered.
func TestConnectionsAreBounded(t *testing.T) {
	l, address := boundedServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "here\n") }))
	for range 5 * maxConnections {
		c := dial(t, address)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\n")
		require.LessOrEqual(t, l.held(), maxConnections)
	}
	response, err := http.Get("http://" + address)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, response.Body.Close())
}

// With every connection at work, a new one gets an answer that says so.
func TestAllConnectionsAtWork(t *testing.T) {
	var working sync.WaitGroup
	working.Add(maxConnections)
	release := make(chan struct{})
	_, address := boundedServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		working.Done()
		<-release
	}))
	defer close(release)
	for range maxConnections {
		_, err := io.WriteString(dial(t, address), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
	}
	working.Wait()
	response, err := http.ReadResponse(bufio.NewReader(dial(t, address)), nil)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "1", response.Header.Get("Retry-After"))
}

func TestHeadersAreBounded(t *testing.T) {
	_, address := boundedServer(t, http.NotFoundHandler())
	c := dial(t, address)
	go func() {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 1<<20))
	}()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
}

// No more answers than the bound are made at once, and none of them waits for a
// client that does not read.
func TestTurns(t *testing.T) {
	var now, most, all atomic.Int32
	body := strings.Repeat("x", 4<<20)
	made := newMakers()
	_, address := boundedServer(t, made.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		_, _ = io.WriteString(w, body)
		now.Add(-1)
		all.Add(1)
	})))
	for range 20 { // ask, and never read
		_, err := io.WriteString(dial(t, address), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
	}
	// One that is made after the next ones would have these given up instead.
	require.Eventually(t, func() bool { return all.Load() == 20 }, time.Minute, time.Millisecond)
	for range 3 {
		response, err := http.Get("http://" + address)
		require.NoError(t, err)
		got, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Len(t, got, len(body))
	}
	require.LessOrEqual(t, most.Load(), int32(maxScrapes))
	made.unread.mu.Lock()
	defer made.unread.mu.Unlock()
	require.LessOrEqual(t, made.unread.bytes, maxUnread)
}

// Two hundred wrong passwords are answered, few of them are compared, and the
// right one, once it was used, passes at any time.
func TestWrongPasswords(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "web.yml")
	require.NoError(t, os.WriteFile(file, []byte("basic_auth_users:\n  prometheus: "+string(hash)+"\n"), 0o600))
	server := newServer(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "here\n") }))
	require.NoError(t, configure(server, Options{ConfigFile: file, Log: slog.New(slog.DiscardHandler)}))
	ask := func(password string) int {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
		if password != "" {
			r.SetBasicAuth("prometheus", password)
		}
		w := httptest.NewRecorder()
		server.Handler.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, http.StatusUnauthorized, ask(""))
	require.Equal(t, http.StatusOK, ask("right"))
	begin, compared := time.Now(), 0
	for i := range 200 {
		code := ask("wrong" + strconv.Itoa(i))
		if code == http.StatusUnauthorized {
			compared++
			continue
		}
		require.Equal(t, http.StatusTooManyRequests, code)
	}
	require.LessOrEqual(t, compared, comparesAtOnce+int(time.Since(begin).Seconds()*comparesPerSecond)+1)
	require.Equal(t, http.StatusOK, ask("right"))
	require.Equal(t, http.StatusUnauthorized, ask(""))
}

// A page elsewhere can neither reload the agent nor show it in a frame.
func TestBrowsersAreKeptOut(t *testing.T) {
	o := options(time.Now())
	o.Lifecycle, o.Reload = true, func(context.Context) error { return nil }
	h := serving(new(stage), o)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://elsewhere"} {
		r := httptest.NewRequest(http.MethodPost, "/-/reload", nil)
		r.Header.Set(name, value)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusForbidden, w.Code, name)
	}
	for _, path := range []string{"/", "/metrics", "/api/v1/snapshot", "/-/healthy"} {
		header := get(t, h, path).Header()
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), path)
		require.Contains(t, header.Get("Content-Security-Policy"), "frame-ancestors 'none'", path)
	}
}

// Of very many reloads at once few wait, and one runs.
func TestReloadsAtOnce(t *testing.T) {
	release := make(chan struct{})
	var running, most atomic.Int32
	o := options(time.Now())
	o.Lifecycle, o.Reload = true, func(context.Context) error {
		most.Store(max(most.Load(), running.Add(1)))
		<-release
		running.Add(-1)
		return nil
	}
	h := serving(new(stage), o)
	codes := make(chan int, 300)
	for range 300 {
		go func() { codes <- send(h, http.MethodPost).Code }()
	}
	for range 300 - maxReloads {
		require.Equal(t, http.StatusConflict, <-codes)
	}
	close(release)
	for range maxReloads {
		require.Equal(t, http.StatusOK, <-codes)
	}
	require.EqualValues(t, 1, most.Load())
}
