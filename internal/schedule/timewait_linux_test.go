package schedule

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// closing is a lab whose servers close connections first.
type closing struct {
	*lab
	closed int
}

// closeFirst leaves n more sockets in TIME_WAIT at the server.
func (l *closing) closeFirst(t *testing.T, server *nettest.Listener, n int) {
	t.Helper()
	l.Do(func() {
		for range n {
			client := nettest.Queue(t, server.Addr, 1)[0]
			require.NoError(t, server.Accept(t, 1)[0].Close())
			require.NoError(t, client.Close())
		}
	})
	l.closed += n
	require.Eventually(t, func() bool { // the last segments may still be on their way
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(l.pid) + "/net/sockstat")
		require.NoError(t, err)
		return strings.Contains(string(stat), " tw "+strconv.Itoa(l.closed)+" ")
	}, time.Minute, time.Millisecond)
}

func TestTimeWaitIsCountedSeldomWhereThereIsMuch(t *testing.T) {
	now := time.Now()
	l := &closing{lab: newLab(t, func(o *Options) { o.Now = func() time.Time { return now } })}
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

	l.closeFirst(t, server, 1000)
	require.Equal(t, 40+1000, timeWait())
	l.closeFirst(t, server, 10)
	require.Equal(t, 40+1000, timeWait(), "many are remembered")
	now = now.Add(30 * time.Second)
	require.Equal(t, 50+1000, timeWait(), "and counted again after a while")
	require.Equal(t, 50+1000, timeWait())

	l.closeFirst(t, server, 10)
	other := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8081", Backlog: 10})
	l.closeFirst(t, other, 10)
	now = now.Add(time.Second)
	snap := l.scan(t)
	require.Len(t, snap.Listeners, 2)
	for _, got := range snap.Listeners {
		want := map[uint16]int{8080: 60 + 1000, 8081: 10}
		require.Equal(t, want[got.ID.Address.Port()], got.Connections.States["TIME_WAIT"], "one that was never counted has all counted")
	}
}
