package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInterruptible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		left, err := interruptible(t.Context(), func(context.Context) error { return broken })
		require.False(t, left)
		require.Equal(t, broken, err)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		left, err = interruptible(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		require.False(t, left)
		require.Equal(t, errInterrupted, err)

		// What hangs is left behind.
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		started := time.Now()
		left, err = interruptible(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
		require.True(t, left)
		require.Equal(t, errInterrupted, err)
		require.Equal(t, time.Second+grace, time.Since(started))
		time.Sleep(time.Minute) // it ends all the same
	})
}

// A signal in the midst of the first snapshot is no failure that has to be explained.
func TestSignalDuringTheFirstLook(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		args []string
		code int
		errs string
	}{
		{[]string{"snapshot", "--port", "1"}, exitFailure, "tcpdiag: interrupted\n"},
		{[]string{"snapshot", "--port", "1", "--interval", "0"}, exitFailure, "tcpdiag: interrupted\n"},
		{[]string{"plan", "--requests", "10", "--from-port", "1"}, exitFailure, "tcpdiag: interrupted\n"},
		{[]string{"watch", "--port", "1", "--output", "lines"}, exitOK, ""},
		{[]string{"agent", "--port", "1", "--web.listen-address", "127.0.0.1:0", "--log-level", "error"}, exitOK, ""},
	} {
		var out, errs bytes.Buffer
		code := Main(ended, tt.args, &out, &errs)
		require.Equal(t, tt.code, code, "%v: %s", tt.args, errs.String())
		require.Equal(t, tt.errs, errs.String(), "%v", tt.args)
		require.Empty(t, out.String(), "%v", tt.args)
	}
}
