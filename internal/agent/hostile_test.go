package agent

import (
	"bufio"
	"bytes"
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

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// boundedServer serves h the way the agent does.
func boundedServer(t *testing.T, h http.Handler) (*boundedListener, string) {
	t.Helper()
	l := newBoundedListener(listenLocal(t), testLedger())
	server := newServer(t.Context(), bodiless(h))
	done := make(chan error, 1)
	go func() { done <- serveOn(l, server) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, <-done)
	})
	return l, l.Addr().String()
}

func testLedger() *shares.Ledger { return shares.NewLedger(slog.New(slog.DiscardHandler), time.Now) }

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

// With every connection at work, a new one of the same client gets an answer that says so.
func TestAllConnectionsAtWork(t *testing.T) {
	var working sync.WaitGroup
	working.Add(maxConnections)
	release := make(chan struct{})
	_, address := boundedServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		working.Done()
		<-release
	}))
	defer close(release)
	begin := time.Now()
	for range maxConnections {
		_, err := io.WriteString(dial(t, address), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
	}
	working.Wait()
	c := dial(t, address)
	if time.Since(begin) > minWork {
		t.Skip("on so slow a machine the first has been at work for long enough to make room")
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "1", response.Header.Get("Retry-After"))
}

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn
	remote net.Addr
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return c.remote }
func (c *fakeConn) Close() error         { c.closed = true; return nil }

func from(last byte) *fakeConn {
	return &fakeConn{remote: &net.TCPAddr{IP: net.IPv4(10, 0, 0, last), Port: 1}}
}

// Whatever a client's connections do, another client's new one closes one of them: one
// that waits before one that is answered, the oldest of its kind.
func TestWhoHasMostMakesRoom(t *testing.T) {
	ledger := testLedger()
	l := newBoundedListener(nil, ledger)
	friend := l.admit(from(2))
	noteState(friend, http.StateActive)
	var all []*boundedConn
	for range maxConnections - 1 {
		c := l.admit(from(1))
		noteState(c, http.StateActive)
		all = append(all, c)
	}
	require.Nil(t, l.admit(from(1)), "all of them have just begun")
	noteState(all[7], http.StateIdle)
	closed := func(c *boundedConn) bool { return c.Conn.(*fakeConn).closed }
	require.NotNil(t, l.admit(from(2)))
	require.True(t, closed(all[7]))
	require.NotNil(t, l.admit(from(3)))
	require.True(t, closed(all[0]))
	all[1].since = all[1].since.Add(-2 * minWork)
	require.NotNil(t, l.admit(from(1)), "one of its own has been at work for long")
	require.True(t, closed(all[1]))
	require.False(t, closed(friend))
	require.Equal(t, []model.Share{{Resource: "connections", Refused: 1, Evicted: 3}}, ledger.Counts()[:1])
}

// A body that never comes holds nobody up: it is refused at once, and the connection
// closed, before anything else is asked.
func TestNoBodyIsExpected(t *testing.T) {
	for name, rest := range map[string]string{
		"of all":          "Content-Length: 100\r\n\r\n",
		"a length":        "Content-Length: 100\r\n\r\n",
		"chunks":          "Transfer-Encoding: chunked\r\n\r\n",
		"expects":         "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n",
		"a body and more": "Content-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			l, address := boundedServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
			c := dial(t, address)
			begin := time.Now()
			line := "GET /-/healthy"
			if name == "of all" {
				line = "OPTIONS *"
			}
			_, err := io.WriteString(c, line+" HTTP/1.1\r\nHost: a\r\n"+rest)
			require.NoError(t, err)
			in := bufio.NewReader(c)
			response, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
			_, err = io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			_, err = in.ReadByte()
			require.Error(t, err, "nothing more is answered")
			require.Less(t, time.Since(begin), 8*time.Second, "it was not waited for: ReadTimeout is 10 s")
			require.Eventually(t, func() bool { return l.held() == 0 }, time.Minute, time.Millisecond)
			require.Zero(t, asked.Load())
		})
	}
}

// What a method, a target or a header that nobody needs may ask for: nothing.
func TestOddRequests(t *testing.T) {
	var s stage
	s.snap.Store(losing(time.Now()))
	o := options(time.Now())
	o.Lifecycle, o.Reload = true, func(context.Context) error { t.Error("reloaded"); return nil }
	_, address := boundedServer(t, serving(&s, o))
	const browser = "Host: 127.0.0.1\r\nAccept-Language: en\r\n"
	for request, want := range map[string]int{
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n":                                                              400,
		"OPTIONS /metrics HTTP/1.1\r\nHost: a\r\n":                                                       405,
		"TRACE / HTTP/1.1\r\nHost: a\r\nX-Secret: s\r\n":                                                 405,
		"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: a\r\n":                                                   405,
		"PUT /-/reload HTTP/1.1\r\nHost: a\r\n":                                                          405,
		"GET /-/reload HTTP/1.1\r\nHost: a\r\n":                                                          405,
		"HEAD /-/reload HTTP/1.1\r\nHost: a\r\n":                                                         405,
		"HEAD /api/v1/snapshot HTTP/1.1\r\nHost: a\r\n":                                                  200,
		"GET http://evil.example/ HTTP/1.1\r\n" + browser:                                                421,
		"GET / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: 127.0.0.1\r\nAccept-Language: en\r\n": 421,
		"POST /-/reload HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n":               421,
		"POST /-/reload HTTP/1.1\r\n" + browser + "Origin: null\r\n":                                     403,
		"POST /-/reload HTTP/1.1\r\n" + browser + "Sec-Fetch-Site: same-site\r\n":                        403,
		"GET / HTTP/1.1\r\nHost: a\r\nX: a\x1bb\r\n":                                                     400,
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n":                                                       400,
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n":                                       501,
		"GET //evil.example/.. HTTP/1.1\r\nHost: a\r\n":                                                  307,
	} {
		c := dial(t, address)
		_, err := io.WriteString(c, request+"\r\n")
		require.NoError(t, err)
		method, _, _ := strings.Cut(request, " ")
		response, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
		require.NoError(t, err, request)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err, request)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, "%q %s", request, body)
		require.NotContains(t, string(body), "X-Secret")
		require.False(t, strings.HasPrefix(response.Header.Get("Location"), "//"), response.Header.Get("Location"))
	}
}

// Who fails at a handshake as often as he likes does not write the log; a panic of the agent's own is in it.
func TestFailedConnectionsInTheLog(t *testing.T) {
	var out bytes.Buffer
	c := &complaints{log: slog.New(slog.NewTextHandler(&out, nil))}
	now := time.Unix(1, 0)
	c.now = func() time.Time { return now }
	for range 1000 {
		_, _ = io.WriteString(c, "http: TLS handshake error from 10.0.0.1:5: \x1b[2J\nlevel=ERROR "+strings.Repeat("x", 1000)+"\n")
	}
	now = now.Add(complaintsEvery)
	_, _ = io.WriteString(c, "http: TLS handshake error from 10.0.0.1:5: EOF\n")
	_, _ = io.WriteString(c, "http: panic serving 10.0.0.1:5: oh\ngoroutine 1\n")
	_, _ = io.WriteString(c, "http2: panic serving 10.0.0.1:5: oh\ngoroutine 1\n")
	require.Equal(t, 4, strings.Count(out.String(), "\n"), out.String())
	require.Contains(t, out.String(), "since_last_line=1000")
	require.NotContains(t, out.String(), "\x1b")
	require.Less(t, out.Len(), 1500)
	require.NotNil(t, newErrorLog(c.log))
}

// 64 that read nothing of a large answer, of one client and for more than a second, leave room for
// a scrape.
func TestSlowReaders(t *testing.T) {
	var asked atomic.Int32
	_, address := boundedServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/large" {
			_, _ = io.WriteString(w, strings.Repeat("x", 16<<20))
		}
	}))
	for range maxConnections {
		_, err := io.WriteString(dial(t, address), "GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return asked.Load() == maxConnections }, time.Minute, time.Millisecond)
	time.Sleep(minWork) // they must have been at it for that long
	for range 20 {
		response, err := http.Get("http://" + address)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.NoError(t, response.Body.Close())
	}
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
	made := newMakers(testLedger())
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
	require.NoError(t, configure(server, nil, Options{ConfigFile: file, Log: slog.New(slog.DiscardHandler)}))
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

// Many addresses that guess keep nobody out whose password is right, and was not seen since the agent started.
func TestGuessersKeepNobodyOut(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "web.yml")
	require.NoError(t, os.WriteFile(file, []byte("basic_auth_users:\n  prometheus: "+string(hash)+"\n"), 0o600))
	server := newServer(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "here\n") }))
	ledger := testLedger()
	require.NoError(t, configure(server, ledger, Options{ConfigFile: file, Log: slog.New(slog.DiscardHandler)}))
	ask := func(address, password string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = address
		r.SetBasicAuth("prometheus", password)
		w := httptest.NewRecorder()
		server.Handler.ServeHTTP(w, r)
		return w.Code
	}
	ctx, stop := context.WithCancel(t.Context())
	var guessing sync.WaitGroup
	var compared atomic.Int32
	for i := range 20 {
		guessing.Go(func() {
			for n, first := 0, true; ctx.Err() == nil; n++ {
				code := ask("10.0.0."+strconv.Itoa(i)+":1", "wrong"+strconv.Itoa(n))
				if code == http.StatusUnauthorized && first {
					compared.Add(1)
					first = false
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	require.Eventually(t, func() bool { return compared.Load() == 20 }, time.Minute, time.Millisecond, "each has been wrong once")
	require.NotZero(t, ledger.Counts()[0].Refused)
	require.Equal(t, http.StatusOK, ask("10.0.1.1:1", "right"))
	stop()
	guessing.Wait()
}

// A page elsewhere can neither reload the agent nor show it in a frame.
func TestBrowsersAreKeptOut(t *testing.T) {
	o := options(time.Now())
	o.Lifecycle, o.Reload = true, func(context.Context) error { return nil }
	h := serving(new(stage), o)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://elsewhere"} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:10889/-/reload", nil)
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
