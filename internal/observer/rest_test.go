package observer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/facts"
)

// Where a walk with the outgoing connections is expensive they are read less often.
func TestOutgoingRest(t *testing.T) {
	for cost, rest := range map[time.Duration]time.Duration{
		time.Millisecond: facts.Apart, 100 * time.Millisecond: 5 * time.Second, time.Second: restful,
	} {
		require.Equal(t, rest, scanned{cost: cost}.rest(), cost)
	}
}

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
