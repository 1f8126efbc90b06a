package agent

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
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
