package attacks

import (
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// TestNetwork: 1,000 connections with a megabyte of headers each, as many that
// ask for the metrics and read nothing, and the agent answers its friends.
func TestNetwork(t *testing.T) {
	nettest.Root(t)
	ns := nettest.Namespace(t)
	a := startAgent(t, ns, build(t))
	large := "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 1<<20)
	for name, request := range map[string]string{
		"headers": large,
		"scrapes": "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
		"silence": "",
	} {
		var attackers sync.WaitGroup
		for range 20 {
			attackers.Go(func() {
				for range 50 {
					c, err := a.dial(t.Context(), "tcp", agentAddress)
					if err != nil {
						continue
					}
					attackers.Go(func() {
						_, _ = io.WriteString(c, request)
					})
					t.Cleanup(func() { _ = c.Close() })
				}
			})
		}
		attackers.Wait()
		a.client.CloseIdleConnections()
		_, _ = a.snapshot(t)
		peak := a.peak(t)
		require.LessOrEqual(t, peak, maxPeak, name)
		t.Logf("%-22s %4dM %8.0f missed, oldest snapshot %.2fs", name, peak, a.missed(t), a.oldest.Seconds())
	}
	t.Logf("ended in %.2fs", a.stop(t).Seconds())
}
