package sampler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/nettest"
)

// closeFirst leaves n sockets in TIME_WAIT at the server.
func (l *lab) closeFirst(t *testing.T, server *nettest.Listener, n int) {
	t.Helper()
	l.Do(func() {
		for range n {
			client := nettest.Queue(t, server.Addr, 1)[0]
			require.NoError(t, server.Accept(t, 1)[0].Close())
			require.NoError(t, client.Close())
		}
	})
}

func TestTimeWaitIsCountedSeldomWhereThereIsMuch(t *testing.T) {
	now := time.Now()
	l := newLab(t, func(o *Options) { o.Now = func() time.Time { return now } })
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 10})
	l.queue(t, server.Addr, 1)
	l.Do(func() { server.Accept(t, 1) })
	timeWait := func() int {
		now = now.Add(time.Second)
		got := only(t, l.scan(t))
		require.Equal(t, 1, got.Connections.States["ESTABLISHED"])
		return got.Connections.States["TIME_WAIT"]
	}
	// What a scan reads of sockstat goes for the next one, too.
	require.Zero(t, timeWait())
	l.closeFirst(t, server, 20)
	require.Equal(t, 20, timeWait())
	l.closeFirst(t, server, 20)
	require.Equal(t, 40, timeWait(), "few are counted each time")

	l.closeFirst(t, server, fewTimeWait)
	require.Equal(t, 40+fewTimeWait, timeWait())
	l.closeFirst(t, server, 10)
	require.Equal(t, 40+fewTimeWait, timeWait(), "many are remembered")
	now = now.Add(timeWaitRest)
	require.Equal(t, 50+fewTimeWait, timeWait(), "and counted again after a while")
	require.Equal(t, 50+fewTimeWait, timeWait())
}
