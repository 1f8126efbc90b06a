package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

func send(h http.Handler, method string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, "/-/reload", nil))
	return w
}

func TestReloadOverHTTP(t *testing.T) {
	broken := func(context.Context) error { return errors.New("tcpdiag.yml:7: no\ntcpdiag.yml:9: no") }
	fine := func(context.Context) error { return nil }
	tests := map[string]struct {
		method  string
		enabled bool
		load    func(context.Context) error
		code    int
		body    string
	}{
		"done":         {http.MethodPost, true, fine, http.StatusOK, "configuration reloaded\n"},
		"PUT":          {http.MethodPut, true, fine, http.StatusMethodNotAllowed, "Method Not Allowed\n"},
		"GET":          {http.MethodGet, true, fine, http.StatusMethodNotAllowed, "Method Not Allowed\n"},
		"GET, off":     {http.MethodGet, false, fine, http.StatusMethodNotAllowed, "Method Not Allowed\n"},
		"off":          {http.MethodPost, false, fine, http.StatusForbidden, "reloading over HTTP is off: start the agent with --web.enable-lifecycle, or send it SIGHUP\n"},
		"broken":       {http.MethodPost, true, broken, http.StatusInternalServerError, "not reloaded, the former configuration stays in force:\ntcpdiag.yml:7: no\ntcpdiag.yml:9: no\n"},
		"without":      {http.MethodPost, true, nil, http.StatusBadRequest, "nothing to read again: the agent was started without --config\n"},
		"without, off": {http.MethodPost, false, nil, http.StatusForbidden, "reloading over HTTP is off: start the agent with --web.enable-lifecycle, or send it SIGHUP\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := options(time.Now())
			o.Lifecycle, o.Reload = tt.enabled, tt.load
			w := send(serving(new(stage), o), tt.method)
			require.Equal(t, tt.code, w.Code)
			require.Equal(t, tt.body, w.Body.String())
			if tt.code == http.StatusMethodNotAllowed {
				require.Equal(t, "POST", w.Header().Get("Allow"))
			}
		})
	}
}

// The next snapshot shows it, and so do the metrics.
func TestReloadIsExported(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := started
	var fail error
	var log strings.Builder
	o := Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now }, Lifecycle: true}
	o.Reload = func(context.Context) error { return fail }
	var s stage
	s.snap.Store(losing(started))
	h := serving(&s, o)
	says := func(successful, at string) {
		t.Helper()
		metrics := get(t, h, "/metrics").Body.String()
		require.Contains(t, metrics, "\ntcpdiag_config_last_reload_successful "+successful+"\n")
		require.Contains(t, metrics, "\ntcpdiag_config_last_reload_success_timestamp_seconds "+at+"\n")
	}
	says("1", "1.767323045e+09")
	now, fail = started.Add(time.Minute), errors.New("a: 1\nb: 2")
	send(h, http.MethodPost)
	says("0", "1.767323045e+09")
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
	require.Contains(t, log.String(), `err="a: 1; b: 2"`)
	now, fail = started.Add(2*time.Minute), nil
	send(h, http.MethodPost)
	says("1", "1.767323165e+09")

	o.Reload = nil
	s.snap.Store(losing(started))
	require.NotContains(t, get(t, serving(&s, o), "/metrics").Body.String(), "tcpdiag_config_")
}

// Signals that come during a reload are one more reload, after it.
func TestSignalsDuringAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, reloads atomic.Int32
		o := options(time.Now())
		o.Reload = func(context.Context) error {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			reloads.Add(1)
			return nil
		}
		hangups := make(chan os.Signal, 1)
		ctx, stop := context.WithCancel(t.Context())
		r := newReloader(new(stage), o)
		done := make(chan error, 1)
		go func() { done <- r.run(ctx, hangups) }()
		hangups <- syscall.SIGHUP
		synctest.Wait()
		for range 3 {
			select {
			case hangups <- syscall.SIGHUP:
			default:
			}
		}
		go func() { _ = r.reload(ctx, "HTTP") }()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 3, reloads.Load())
		require.EqualValues(t, 1, most.Load(), "one at a time")
		stop()
		require.NoError(t, <-done)
	})
}

// turns is a sampler whose runs end as listed.
type turns struct {
	stage
	ends []error
}

func (s *turns) Run(context.Context) error {
	err := s.ends[0]
	s.ends = s.ends[1:]
	return err
}

func TestAgentWaitsForAModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing, other := fmt.Errorf("scan: %w", sockdiag.ErrNoModule), errors.New("another")
		var log bytes.Buffer
		m := &moduleWait{log: slog.New(slog.NewTextHandler(&log, nil))}
		require.Equal(t, "the first scan is not done", m.reason())
		start := time.Now()
		require.Equal(t, other, m.run(t.Context(), &turns{ends: []error{missing, missing, other}}))
		require.Equal(t, 2*moduleRetry, time.Since(start))
		require.Contains(t, m.reason(), "modprobe tcp_diag")
		require.Equal(t, 1, strings.Count(log.String(), "\n"), "logged once: %s", log.String())
	})
}

func TestAgentWaitingForAModuleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		m := &moduleWait{log: slog.New(slog.DiscardHandler)}
		require.NoError(t, m.run(ctx, &turns{ends: []error{sockdiag.ErrNoModule}}))
	})
}
