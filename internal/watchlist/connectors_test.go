package watchlist

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A process whose files do not answer delays its own limits and nothing else.
func TestDiscoveryThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, news := make(chan struct{}), new(atomic.Int32)
		c := newConnectors(func(_ context.Context, pid int, _ uint64, _ []match.Listening) (match.Connectors, []model.Unavailable) {
			if pid == 1 {
				<-answer
			}
			return match.Connectors{}, []model.Unavailable{{What: "read"}}
		}, time.Now, func() { news.Add(1) })
		hanging, fine := hostproc.ProcessKey{PID: 1}, hostproc.ProcessKey{PID: 2}
		begin := time.Now()
		c.of(hanging, nil, time.Second)
		c.of(fine, nil, time.Second)
		c.wait(t.Context(), DiscoveryPatience)
		require.Equal(t, DiscoveryPatience, time.Since(begin), "no longer")
		_, unavailable := c.of(fine, nil, time.Hour)
		require.Len(t, unavailable, 1)
		synctest.Wait()
		require.EqualValues(t, 1, news.Load())
		_, unavailable = c.of(hanging, nil, 0)
		require.Empty(t, unavailable, "not yet")

		time.Sleep(DiscoveryDeadline)
		_, unavailable = c.of(hanging, nil, 0)
		require.Equal(t, []model.Unavailable{tooSlow(1)}, unavailable)
		close(answer)
		synctest.Wait()
		_, unavailable = c.of(hanging, nil, time.Hour)
		require.Equal(t, []model.Unavailable{{What: "read"}}, unavailable, "adopted when it comes")
		require.EqualValues(t, 2, news.Load())
	})
}

// Ten Actuators that do not answer take the first scan as long as one.
func TestSilentActuatorsAreAskedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnectors(func(_ context.Context, pid int, _ uint64, _ []match.Listening) (match.Connectors, []model.Unavailable) {
			time.Sleep(900 * time.Millisecond)
			return match.Connectors{}, []model.Unavailable{{What: "Actuator"}}
		}, time.Now, func() {})
		begin := time.Now()
		for pid := range 10 {
			c.of(hostproc.ProcessKey{PID: pid}, nil, 0)
		}
		c.wait(t.Context(), DiscoveryPatience)
		require.Equal(t, 900*time.Millisecond, time.Since(begin))
		for pid := range 10 {
			_, unavailable := c.of(hostproc.ProcessKey{PID: pid}, nil, time.Hour)
			require.Len(t, unavailable, 1, "all have been asked by then")
		}
	})
}
