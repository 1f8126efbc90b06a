package plan

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// smallSynQueue asks the kernel: how many clients that never answer a SYN-ACK are in
// the queue of a listener, of more than it has room for.
func smallSynQueue(t *testing.T) bool {
	t.Helper()
	const backlog, sent = 8, 20
	clients, server := nettest.Namespace(t), nettest.Namespace(t)
	_, addr := nettest.Veth(t, clients, server)
	var l *nettest.Listener
	server.Do(func() {
		l = nettest.Listen(t, nettest.ListenOptions{Address: netip.AddrPortFrom(addr, 0).String(), Backlog: backlog})
	})
	clients.Do(func() { nettest.HalfOpen(t, l.Addr, 1, sent) })
	cookies := func() (n int) {
		server.Do(func() { n = int(nettest.TCPExt(t)("TCPReqQFullDoCookies")) })
		return n
	}
	half := func() (n int) {
		server.Do(func() {
			table, err := os.ReadFile("/proc/thread-self/net/tcp")
			require.NoError(t, err)
			n = strings.Count(string(table), " 03 ") // TCP_SYN_RECV
		})
		return n
	}
	require.Eventually(t, func() bool { return half()+cookies() == sent }, time.Minute, 10*time.Millisecond)
	return half() == backlog
}
