package cli

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// What the demo says of itself: where it is to be asked, and times as they are on every screen.
func TestDemoIntroducesItself(t *testing.T) {
	address := freeAddress(t.Context(), "127.0.0.1:0")
	require.Regexp(t, `^127\.0\.0\.1:[1-9][0-9]*$`, address)
	o := &demoOptions{clients: 40, server: demo.ServerOptions{MaxThreads: 4, MaxConnections: 20, AcceptCount: 5, ServiceTime: 2 * time.Second}}
	var b bytes.Buffer
	o.introduce(&b, netip.MustParseAddrPort("127.0.0.1:40273"), address)
	require.Contains(t, b.String(), "a request takes 2 s.\n")
	require.Contains(t, b.String(), "40 come within 0.25 s, and give up when they are not connected after 4 s.\n")
	for line := range strings.Lines(b.String()) {
		require.LessOrEqual(t, len(line), 81, line)
	}
}
