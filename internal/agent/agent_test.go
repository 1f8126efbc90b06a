package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// stage is a sampler whose snapshot the test sets: the agent's own work is to
// serve it.
type stage struct {
	snap atomic.Pointer[model.Snapshot]
	fail error
}

func (s *stage) Run(ctx context.Context) error {
	if s.fail != nil {
		return s.fail
	}
	<-ctx.Done()
	return nil
}

func (s *stage) Snapshot() *model.Snapshot { return s.snap.Load() }

func (s *stage) Next() <-chan struct{} {
	soon := make(chan struct{})
	time.AfterFunc(10*time.Millisecond, func() { close(soon) })
	return soon
}

// PutAgent makes another snapshot with it.
func (s *stage) PutAgent(put func(*model.Agent)) {
	if now := s.snap.Load(); now != nil {
		next := *now
		put(&next.Self.Agent)
		s.snap.Store(&next)
	}
}

func losing(at time.Time) *model.Snapshot {
	return &model.Snapshot{
		Time: at, Host: "app-1", Interval: time.Minute,
		Listeners: []model.Listener{{
			ID:   model.ListenerID{NetNS: 1, Address: netip.MustParseAddrPort("[::]:8080")},
			Port: 8080, Members: 1,
			AcceptQueue: &model.AcceptQueue{Length: 101, Limit: 100},
			Process:     &model.Process{PID: 42, Comm: "java"},
			Verdict: model.Verdict{
				Status: model.StatusLosing, Cause: model.CauseMaxConnections,
				Summary: "8192 of 8192 connections are taken & <b>101</b> wait.",
			},
		}},
	}
}

func options(now time.Time) Options {
	return Options{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
}

func serving(s *stage, o Options) http.Handler {
	recorder := newRecorder(s, nil, o)
	page, err := newPage(s.Snapshot, recorder, o)
	if err != nil {
		panic(err)
	}
	return handler(s.Snapshot, new(moduleWait).reason, newReloader(s, o), recorder, page, shares.NewLedger(o.Log, time.Now), o)
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestBeforeTheFirstScan(t *testing.T) {
	h := serving(new(stage), options(time.Now()))
	require.Equal(t, http.StatusOK, get(t, h, "/-/healthy").Code)
	require.Equal(t, http.StatusServiceUnavailable, get(t, h, "/-/ready").Code)
	require.Equal(t, http.StatusServiceUnavailable, get(t, h, "/api/v1/snapshot").Code)
	require.Equal(t, http.StatusOK, get(t, h, "/metrics").Code)
	require.Contains(t, get(t, h, "/").Body.String(), "first scan is not done")
}

// An overload must not restart the pod: health does not know of it.
func TestServesWhatWasPublished(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var s stage
	s.snap.Store(losing(at))
	h := serving(&s, options(at.Add(1500*time.Millisecond)))
	require.Equal(t, http.StatusOK, get(t, h, "/-/healthy").Code)
	require.Equal(t, http.StatusOK, get(t, h, "/-/ready").Code)
	require.Equal(t, http.StatusNotFound, get(t, h, "/nothing").Code)
	require.Equal(t, http.StatusNotFound, get(t, h, "/debug/pprof/").Code, "only behind its flag")

	var doc struct {
		ScanAge   float64 `json:"scan_age_seconds"`
		Listeners []struct {
			Address string
		}
	}
	w := get(t, h, "/api/v1/snapshot")
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
	require.InDelta(t, 1.5, doc.ScanAge, 1e-9)
	require.Equal(t, "[::]:8080", doc.Listeners[0].Address)
	require.Nil(t, s.snap.Load().ScanAge, "the published snapshot is not changed")

	metrics := get(t, h, "/metrics").Body.String()
	require.Contains(t, metrics, `tcpdiag_listener_accept_queue_length{listener="[::]:8080",netns="1"} 101`)
}

func TestLandingPage(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var s stage
	s.snap.Store(losing(at))
	w := get(t, serving(&s, options(at.Add(time.Second))), "/")
	page := w.Body.String()
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'", "nothing is loaded from elsewhere")
	require.Contains(t, page, `<meta name="viewport"`)
	require.Contains(t, page, `class="losing"`)
	require.Contains(t, page, "[::]:8080")
	require.Contains(t, page, "101 / 101")
	require.Contains(t, page, "&lt;b&gt;101&lt;/b&gt;", "escaped")
	require.NotContains(t, page, "<script>", "none within the page")
}

// running starts an agent and returns what its Run will return.
func running(ctx context.Context, t *testing.T, o Options) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, new(stage), o) }()
	require.Eventually(t, func() bool {
		for _, address := range o.Listen {
			c, err := net.Dial("tcp", address)
			if err != nil || c.Close() != nil {
				return false
			}
		}
		return true
	}, time.Minute, 5*time.Millisecond)
	return done
}

// Neither requests that do not end nor a task that hangs hold up the end. Without
// the dismissal of such connections it takes a second at least, so that one try of
// a few must be quicker, which a busy machine allows.
func TestEndIsNotHeldUp(t *testing.T) {
	for name, request := range map[string]string{
		"half a request": "GET /metrics HTTP/1.1\r\nHost: x\r\n", "silence": "", "a stream": "GET /api/v1/stream HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			quickest := stopsAfter(t, request)
			for tries := 1; tries < 8 && quickest >= shutdownTimeout; tries++ {
				quickest = min(quickest, stopsAfter(t, request))
			}
			require.Less(t, quickest, shutdownTimeout)
		})
	}
}

// stopsAfter is how long an agent takes to end beside such connections.
func stopsAfter(t *testing.T, request string) time.Duration {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	o := options(time.Now())
	o.Listen = []string{nettest.FreeAddress(t), nettest.FreeAddress(t)}
	done := running(ctx, t, o)
	for range 20 {
		half, err := net.Dial("tcp", o.Listen[1])
		require.NoError(t, err)
		defer half.Close()
		_, err = io.WriteString(half, request)
		require.NoError(t, err)
	}
	told := time.Now()
	stop()
	require.NoError(t, <-done)
	return time.Since(told)
}

// A task that never ends is left behind, and one that fails says so all the same.
func TestTaskThatHangsIsLeftBehind(t *testing.T) {
	for _, want := range []error{nil, errors.New("no netlink")} {
		ctx, stop := context.WithCancel(t.Context())
		g, tasks := errgroup.WithContext(ctx)
		hangs := make(chan struct{})
		g.Go(func() error { <-hangs; return nil })
		if want != nil {
			g.Go(func() error { return want })
		} else {
			stop()
		}
		require.Equal(t, want, waitFor(tasks, g, slog.New(slog.DiscardHandler)))
		close(hangs)
		stop()
	}
}

func TestBasicAuth(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	config := filepath.Join(t.TempDir(), "web.yml")
	// bcrypt of "secret", cost 4
	require.NoError(t, os.WriteFile(config, []byte("basic_auth_users:\n  ops: $2a$04$jT2K0VYNTZF7H0nFLs2HnuqCHnQpmKNJM2jPnhjm6IVcBs8JyzOSu\n"), 0o600))
	o := options(time.Now())
	o.Listen, o.ConfigFile = []string{nettest.FreeAddress(t)}, config
	done := running(ctx, t, o)
	resp, err := http.Get("http://" + o.Listen[0] + "/metrics")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	stop()
	require.NoError(t, <-done)
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	o := options(time.Now())
	o.Listen = []string{l.Addr().String()}
	err = Run(context.Background(), new(stage), o)
	require.ErrorContains(t, err, l.Addr().String())
}

func TestFirstScanFails(t *testing.T) {
	o := options(time.Now())
	o.Listen = []string{nettest.FreeAddress(t)}
	broken := errors.New("no netlink")
	require.ErrorIs(t, Run(context.Background(), &stage{fail: broken}, o), broken)
}

func TestPprofBehindItsFlag(t *testing.T) {
	o := options(time.Now())
	o.Profile = true
	w := get(t, serving(new(stage), o), "/debug/pprof/goroutine?debug=1")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "goroutine profile")
}

// An agent whose clocks have stopped says so; it is the agent's own state.
func TestHealthyIsTheAgentsOwnState(t *testing.T) {
	w := httptest.NewRecorder()
	serveHealthy(w, func() error { return errors.New("the accept queues have not been sampled for 30s") })
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "not been sampled")
	w = httptest.NewRecorder()
	serveHealthy(w, func() error { return nil })
	require.Equal(t, http.StatusOK, w.Code)
}

// looks is a sampler that runs as a test says.
type looks func(context.Context) error

func (l looks) Run(ctx context.Context) error { return l(ctx) }
func (looks) Snapshot() *model.Snapshot       { return nil }
func (looks) Next() <-chan struct{}           { return nil }
func (looks) PutAgent(func(*model.Agent))     {}

func TestSamplerThatIsToldToEnd(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		run   looks
		after time.Duration // of the signal
		want  error
		takes time.Duration
	}{
		"in the midst of the first scan": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, time.Second, nil, time.Second},
		"and hangs":                      {func(context.Context) error { time.Sleep(time.Minute); return nil }, time.Second, nil, time.Second + shutdownTimeout},
		"and fails":                      {func(ctx context.Context) error { <-ctx.Done(); return broken }, time.Second, broken, time.Second},
		"after it has failed":            {func(context.Context) error { return broken }, time.Second, broken, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(tt.after, cancel)
				started := time.Now()
				err := sample(ctx, &moduleWait{log: slog.New(slog.DiscardHandler)}, tt.run)
				require.Equal(t, tt.takes, time.Since(started))
				require.ErrorIs(t, err, tt.want)
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestLimitHeap(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for variable, expect := range map[string]int{"": heapGrowth, "GOGC": 100, "GOMEMLIMIT": 100} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			if variable != "" {
				t.Setenv(variable, "70")
			}
			debug.SetGCPercent(100)
			LimitHeap()
			require.Equal(t, expect, debug.SetGCPercent(100))
		})
	}
}

func TestLimitProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, tt := range []struct {
		environment   string
		there, expect int
	}{
		{"", 64, 2},
		{"", 2, 2},
		{"", 1, 1},
		{"7", 7, 7},
	} {
		t.Setenv("GOMAXPROCS", tt.environment)
		runtime.GOMAXPROCS(tt.there)
		LimitProcessors()
		require.Equal(t, tt.expect, runtime.GOMAXPROCS(0), "%+v", tt)
	}
}
