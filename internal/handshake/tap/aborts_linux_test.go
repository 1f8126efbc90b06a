package tap

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A server that closes with SO_LINGER 0 when it has written a large answer cuts it off, and the RSTs show it: not of
// each client, as it may have acknowledged all that was sent. Of answers that were acknowledged by then, and of those of an ordinary close, none is.
func TestServerResetsInTheMidstOfAnAnswer(t *testing.T) {
	t.Parallel()
	try := func(t *testing.T, w world) {
		for _, command := range [][]string{ // a slow network: part of an answer is on its way for milliseconds
			{"ip", "link", "set", "veth0", "gso_max_segs", "1"},
			{"tc", "qdisc", "add", "dev", "veth0", "root", "tbf", "rate", "20mbit", "burst", "3200", "latency", "5s"},
		} {
			if out, err := w.server.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				t.Skipf("%q: %v: %s", command, err, out)
			}
		}
		const clients = 8
		for _, a := range []answer{
			{"an ordinary close", 200 << 10, -1, false},
			{"an answer that was acknowledged", 1000, 0, true},
		} {
			l := w.listen(t, 100)
			tap := w.tap(t, l.Addr.Port())
			for range clients {
				require.True(t, w.whole(t, l, a), a.name)
			}
			time.Sleep(time.Second / 2) // of nothing
			require.Zero(t, countedAt(t, tap, l.Addr).ResetInAnswer, a.name)
		}
		l := w.listen(t, 100)
		tap := w.tap(t, l.Addr.Port())
		for n, cut := 0, 0; cut == 0 || countedAt(t, tap, l.Addr).ResetInAnswer == 0; n++ {
			if !w.whole(t, l, answer{"a large one", 1 << 20, 0, false}) {
				cut++
			}
			require.Less(t, n, 200, "none is seen, %d were cut off", cut)
		}
	}
	across(t, "veth, IPv4", nettest.Veth, try)
	across(t, "veth, IPv6", vethIPv6, try)
	acrossOneWay(t, try)
}

// answer is what a server writes before it closes.
type answer struct {
	name         string
	size, linger int
	acknowledged bool // before the close
}

// whole reports whether a client gets all of an answer.
func (w world) whole(t *testing.T, l *nettest.Listener, a answer) bool {
	var client net.Conn
	w.clients.Do(func() {
		var err error
		client, err = net.Dial("tcp", l.Addr.String())
		require.NoError(t, err)
	})
	defer client.Close()
	_, err := client.Write([]byte("GET /"))
	require.NoError(t, err)
	server := l.Accept(t, 1)[0].(*net.TCPConn)
	_, err = io.ReadFull(server, make([]byte, 5))
	require.NoError(t, err)
	require.NoError(t, server.SetLinger(a.linger))
	if !a.acknowledged {
		go func() {
			_, _ = server.Write(make([]byte, a.size))
			_ = server.Close()
		}()
		n, _ := io.Copy(io.Discard, client)
		return n == int64(a.size)
	}
	_, err = server.Write(make([]byte, a.size))
	require.NoError(t, err)
	_, err = io.ReadFull(client, make([]byte, a.size))
	require.NoError(t, err)
	_, err = client.Write([]byte("x")) // acknowledges it
	require.NoError(t, err)
	_, err = io.ReadFull(server, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, server.Close())
	return true
}
