package tap

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Clients whose request is read, and whose connection the server then ends without a byte, were not answered, however soon
// they close their end.
func TestEndedByTheServer(t *testing.T) {
	t.Parallel()
	try := func(t *testing.T, w world) {
		l := w.listen(t, 100)
		tap := w.tap(t, l.Addr.Port())
		const clients, request = 40, 100
		b := make([]byte, request)
		for i := range clients {
			c := w.connect(t, l.Addr, 1)
			settled(t, c)
			_, err := unix.Write(c[0].fd, b)
			require.NoError(t, err)
			s := l.Accept(t, 1)[0]
			left := i % 2 // bytes that the server does not read: its FIN is followed by a RST
			_, err = io.ReadFull(s, make([]byte, request-left))
			require.NoError(t, err)
			require.NoError(t, s.(*net.TCPConn).CloseWrite())
			require.NoError(t, s.Close())
			require.Eventually(t, func() bool { _, err := unix.Read(c[0].fd, b); return !errors.Is(err, unix.EAGAIN) }, time.Minute, time.Millisecond)
			c[0].close()
		}
		e := decided(t, tap, l.Addr, clients)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: clients}, e.Clients)
		require.Eventually(t, func() bool { return countedAt(t, tap, l.Addr).Inside == 0 }, time.Minute, time.Millisecond)
		require.Equal(t, outcome.Answers{Unanswered: clients, Closed: clients}, countedAt(t, tap, l.Addr).Answers)
	}
	on(t, "loopback", "127.0.0.1", try)
	across(t, "veth", nettest.Veth, try)
}

// While packets that leave are not read, nothing but its SYN is read of a client whose connection the server closes with
// bytes that it has not read, behind a FIN: it answers the FIN, and the RST ends it. It was let in.
func TestEndedByTheServerUnread(t *testing.T) {
	t.Parallel()
	acrossOneWay(t, func(t *testing.T, w world) {
		l, tap := w.known(t)
		const clients = 20
		b := make([]byte, 100)
		for range clients {
			c := w.connect(t, l.Addr, 1)
			settled(t, c)
			_, err := unix.Write(c[0].fd, b)
			require.NoError(t, err)
			s := l.Accept(t, 1)[0]
			_, err = io.ReadFull(s, make([]byte, len(b)-1))
			require.NoError(t, err)
			require.NoError(t, s.(*net.TCPConn).CloseWrite())
			require.NoError(t, s.Close())
		}
		var e outcome.Endpoint
		require.Eventually(t, func() bool {
			e = countedAt(t, tap, l.Addr)
			return e.Clients[outcome.Connected]+e.Untracked+e.Failed() == 1+clients && e.Inside == 1 // who has made it known
		}, time.Minute, 10*time.Millisecond)
		require.Less(t, e.Untracked, uint64(clients/2), "%v", e)
		require.Zero(t, e.Failed())
		require.Zero(t, e.Answers.Checks+e.Answers.Answered)
	})
}
