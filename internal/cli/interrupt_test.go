package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
)

func TestInterruptible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		left, err := command.Interruptible(t.Context(), func(context.Context) error { return broken })
		require.False(t, left)
		require.Equal(t, broken, err)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		left, err = command.Interruptible(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		require.False(t, left)
		require.Equal(t, command.ErrInterrupted, err)

		// What hangs is left behind.
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		started := time.Now()
		left, err = command.Interruptible(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
		require.True(t, left)
		require.Equal(t, command.ErrInterrupted, err)
		require.Equal(t, time.Second+command.Grace, time.Since(started))
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
		{[]string{"snapshot", "--port", "1"}, command.ExitFailure, "tcpdiag: interrupted\n"},
		{[]string{"snapshot", "--port", "1", "--interval", "0"}, command.ExitFailure, "tcpdiag: interrupted\n"},
		{[]string{"plan", "--requests", "10", "--from-port", "1"}, command.ExitFailure, "tcpdiag: interrupted\n"},
		{[]string{"watch", "--port", "1", "--output", "lines"}, command.ExitOK, ""},
		{[]string{"agent", "--port", "1", "--web.listen-address", "127.0.0.1:0", "--log-level", "error"}, command.ExitOK, ""},
	} {
		var out, errs bytes.Buffer
		code := Main(ended, tt.args, &out, &errs)
		require.Equal(t, tt.code, code, "%v: %s", tt.args, errs.String())
		require.Equal(t, tt.errs, errs.String(), "%v", tt.args)
		require.Empty(t, out.String(), "%v", tt.args)
	}
}
