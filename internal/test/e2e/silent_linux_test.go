package e2e

import (
	"io"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// Clients that connect and send nothing hold nine of ten connections; one has
// been served and kept alive. Tomcat ends the nine after connectionTimeout, 10 s
// here, and not the one, whose keepAliveTimeout is five minutes: so the advice is
// to lower keepAliveTimeout. No client timeouts.
func TestLongSilentClients(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 4, MaxConnections: 10, AcceptCount: 5}, func(o *rig.TomcatOptions) {
		o.Args = append(o.Args, "--server.tomcat.connection-timeout=10s", "--server.tomcat.keep-alive-timeout=5m")
	})
	warm(t, server)
	quiet(t, server)
	to := netip.MustParseAddrPort(server.Address())
	served := nettest.Queue(t, to, 1)[0]
	_, err := served.Write([]byte("GET " + hello(0) + " HTTP/1.1\r\nHost: a\r\n\r\n"))
	require.NoError(t, err)
	_, err = served.Read(make([]byte, 4096))
	require.NoError(t, err)
	silent := nettest.Queue(t, to, 9+6)
	// A snapshot judges the moment at which it begins as well, and who has come within the last second may be about to ask.
	nettest.Within(t, time.Minute, "all that were let in are seen to want nothing", func() bool {
		l := listener(t, snapshot(t, nil, append(on(server), "--interval", "100ms")...), server.Port)
		return l.Connections != nil && l.Connections.Silent == 9
	})

	d := snapshot(t, nil, append(on(server), "--interval", "1s")...)
	l := listener(t, d, server.Port)
	require.Equal(t, 10, l.Connections.Idle)
	require.Equal(t, 9, l.Connections.Silent)
	require.Equal(t, "saturated", l.Verdict.Status)
	require.Equal(t, "keep_alive_idle", l.Verdict.Cause)
	require.Contains(t, l.Verdict.Summary, "all of them idle (9 without a request yet)")
	require.Contains(t, l.Verdict.Findings[0].Advice, "Lower server.tomcat.connection-timeout from 10 s to 5 s")

	for _, c := range silent[:9] {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "ended by connectionTimeout")
	}
	require.NoError(t, served.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = served.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "keepAliveTimeout is longer")
}
