package sockdiag

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// TestCapture writes the replies of the running kernel to testdata, for the
// tests of the decoder: UPDATE=1 go test ./internal/sockdiag -run TestCapture. It is no
// check, so it does nothing otherwise.
func TestCapture(t *testing.T) {
	if os.Getenv("UPDATE") == "" {
		return
	}
	ns := nettest.Namespace(t)
	var c *Conn
	ns.Do(func() {
		var err error
		c, err = Dial()
		require.NoError(t, err)
		for _, o := range []nettest.ListenOptions{
			{Address: "127.0.0.1:8080", Backlog: 5},
			{Address: "[::]:8081", Backlog: 100},
			{Address: "[::]:8082", Backlog: 1, V6Only: true},
			{Address: "[::ffff:127.0.0.1]:8083", Backlog: 100},
			{Address: "0.0.0.0:8084", Backlog: 100, Device: "lo"},
		} {
			l := nettest.Listen(t, o)
			if l.Addr.Port() == 8080 {
				nettest.Queue(t, l.Addr, 6)
				nettest.Overflow(t, l.Addr, 40)
			}
			if l.Addr.Port() == 8083 {
				captureConnections(t, l)
			}
		}
		deferred := nettest.Listen(t, nettest.ListenOptions{Address: "127.0.0.1:8085", Backlog: 5, DeferAccept: 30})
		nettest.Queue(t, deferred.Addr, 1)
	})
	defer c.Close()

	v4 := ListenerID{Family: FamilyIPv4, Local: netip.MustParseAddrPort("127.0.0.1:8080")}
	captureReply(t, c, "lookup_ipv4", appendLookup(nil, v4))
	v6 := ListenerID{Family: FamilyIPv6, Local: netip.MustParseAddrPort("[::]:8081")}
	captureReply(t, c, "lookup_ipv6", appendLookup(nil, v6))
	gone := ListenerID{Family: FamilyIPv4, Local: netip.MustParseAddrPort("127.0.0.1:1")}
	captureReply(t, c, "lookup_enoent", appendLookup(nil, gone))
	captureReply(t, c, "dump_listen", appendDump(nil, Listen.mask(), extension(diagSKMemInfo), 0))
	c.filter.set(PortsOf(8080, 8083, 8085))
	captureReply(t, c, "scan", appendFilter(appendDump(nil, uint32(Connected()), extension(diagInfo), 0), c.filter.ranges, 0))
}

func captureConnections(t *testing.T, l *nettest.Listener) {
	t.Helper()
	clients := nettest.Queue(t, netip.MustParseAddrPort("127.0.0.1:8083"), 4)
	accepted := l.Accept(t, 4)
	_, err := clients[0].Write([]byte("twelve bytes"))
	require.NoError(t, err)
	require.NoError(t, clients[1].Close())  // CLOSE_WAIT
	require.NoError(t, accepted[2].Close()) // TIME_WAIT
	require.NoError(t, clients[2].Close())
	_, err = accepted[3].Write([]byte("abc"))
	require.NoError(t, err)
}

// captureReply writes the whole reply, one datagram after the other, as the
// messages stand in it.
func captureReply(t *testing.T, c *Conn, name string, request []byte) {
	t.Helper()
	c.out = request
	require.NoError(t, c.send())
	var all []byte
	for {
		buf, err := c.receive()
		require.NoError(t, err)
		all = append(all, buf...)
		done := false
		for len(buf) > 0 {
			var m message
			m, buf, err = nextMessage(buf)
			require.NoError(t, err)
			done = done || m.typ != tcpDiagGetSock
		}
		if done {
			break
		}
	}
	require.NoError(t, os.MkdirAll("testdata", 0o755))
	require.NoError(t, os.WriteFile(filepath.Join("testdata", name+".bin"), all, 0o644))
}
