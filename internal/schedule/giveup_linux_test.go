package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// roomy is a machine with one server that is far from its limits, with n requests in service.
func roomy(t *testing.T, n int) (*world, *kernel) {
	k := newKernel(listensOn(8080, 1))
	k.sockets = connected(8080, n, serving)
	w := newWorld(t, k, func(o *Options) {
		o.ScanInterval = 10 * time.Second
		o.Limits.MaxConnections, o.Limits.MaxThreads = watchlist.ByHand(new(8192), "flag"), watchlist.ByHand(new(8192), "flag")
	})
	w.scanned()
	for range 30 {
		w.second()
	}
	return w, k
}

// closes has the clients of some connections close, that long ago.
func closes(sockets []sockdiag.Socket, ago time.Duration) {
	for i := range sockets {
		s := &sockets[i]
		s.State, s.Info.LastDataRecv, s.Info.LastDataSent, s.Info.LastAckRecv = sockdiag.CloseWait, time.Minute, time.Minute, ago
	}
}

// All of 600 clients give up within two seconds at a server that has no other trouble and answers all of them in the next seconds: each
// counts, also where a reading meets the first hundred of them alone. That is no trouble in which others would have to wait.
func TestScriptedAllGiveUp(t *testing.T) {
	w, k := roomy(t, 600)
	closes(k.sockets[:100], 0)
	for before := k.walks; k.walks == before; {
		w.second()
	}
	closes(k.sockets, time.Second)
	w.second()
	w.second()
	require.Equal(t, 1, w.tasks.followed)
	for len(k.sockets) > 0 {
		require.Zero(t, w.tasks.troubles)
		k.sockets = k.sockets[150:]
		k.counters["EstabResets"] += 150
		w.second()
	}
	w.second()
	require.EqualValues(t, 600, w.only(w.Snapshot()).Losses.AbandonedRequests)
}

// A server of whose clients a few have closed lately, as at any moment, is read no more often than any that is calm.
func TestScriptedAFewGiveUp(t *testing.T) {
	w, k := roomy(t, 40)
	calm := k.walks
	for range 60 {
		w.second()
	}
	calm = k.walks - calm
	closes(k.sockets[:2], time.Second)
	before := k.walks
	for range 60 {
		w.second()
	}
	require.Equal(t, model.StatusOK, w.only(w.Snapshot()).Verdict.Status)
	require.InDelta(t, calm, k.walks-before, 2)
}
