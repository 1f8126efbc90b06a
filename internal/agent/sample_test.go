package agent

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// looks is a sampler that runs as a test says.
type looks func(context.Context) error

func (l looks) Run(ctx context.Context) error { return l(ctx) }
func (looks) Snapshot() *model.Snapshot       { return nil }
func (looks) Next() <-chan struct{}           { return nil }

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
