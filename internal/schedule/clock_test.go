package schedule

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A bell that rings too early for its step does not put off the one that is due.
func TestBellsPutNothingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b, steps := newBell(), make(chan time.Time, 10)
		go every(ctx, b, time.Now, always(500*time.Millisecond), func() time.Duration {
			steps <- time.Now()
			return 100 * time.Millisecond
		})
		first := <-steps
		time.Sleep(50 * time.Millisecond)
		b.ring()
		require.Equal(t, 100*time.Millisecond, (<-steps).Sub(first))
		cancel()
		synctest.Wait()
	})
}
