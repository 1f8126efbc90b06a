package schedule

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A server that has closed its listener and serves those whom it has is named for as long as it has
// established connections, by who knew its listener and by who comes afterwards. What a closed connection leaves
// behind (CLOSE_WAIT, FIN_WAIT2, TIME_WAIT) is none.
func TestServerThatDrains(t *testing.T) {
	now := time.Now()
	here := func(o *Options) {
		expectingRarePort(o)
		o.All, o.Now = false, func() time.Time { return now }
	}
	l := newLab(t, here)
	server := l.listen(t, nettest.ListenOptions{Address: fmt.Sprintf("127.0.0.1:%d", rarePort()), Backlog: 5})
	var clients []interface{ Close() error }
	l.Do(func() {
		for _, c := range nettest.Queue(t, server.Addr, 4) {
			clients = append(clients, c)
		}
	})
	served := server.Accept(t, 4)
	require.Nil(t, only(t, l.scan(t)).Draining, "it listens")
	server.Close()

	look := func(s *lab) *model.OtherProcess {
		now = now.Add(time.Minute) // however long the latest search took
		got := only(t, s.scan(t))
		require.Equal(t, model.StatusDown, got.Verdict.Status)
		require.Equal(t, model.CauseNoListener, got.Verdict.Cause)
		return got.Draining
	}
	late := &lab{NS: l.NS, pid: l.pid, faults: newFaults()}
	late.Scheduler = late.sampler(t, here)
	for _, s := range []*lab{l, late} {
		got := look(s)
		require.NotNil(t, got)
		require.Equal(t, os.Getpid(), got.PID)
		require.Equal(t, 4, got.Connections)
	}
	require.NoError(t, clients[0].Close()) // its end here is in CLOSE_WAIT
	require.NoError(t, served[1].Close())  // in FIN_WAIT2
	require.Equal(t, 2, look(l).Connections)
	for _, c := range served {
		_ = c.Close()
	}
	require.Nil(t, look(l))
	require.Nil(t, look(late))
}
