package schedule

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A server dies with its connections taken by idle clients, and another one takes its address, free
// yet and overrun at once: what each has dropped is its own.
func TestDropsOfARestartedServer(t *testing.T) {
	const before, after = 30, 50
	for name, between := range map[string]func(*testing.T, *lab){
		"no scan saw it gone":  func(*testing.T, *lab) {},
		"one scan saw it gone": func(t *testing.T, l *lab) { l.scan(t) },
		"two scans did":        func(t *testing.T, l *lab) { l.scan(t); l.scan(t) },
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			l := newLab(t, func(o *Options) {
				o.Limits.MaxConnections = &model.Setting[int]{Value: 2, Kind: model.SourceFlag}
				// Else that this process waits for a CPU is the cause of a busy machine.
				o.Now = func() time.Time { return now }
			})
			l.looping.Store(true)
			server := l.listen(t, nettest.ListenOptions{Backlog: 1})
			l.queue(t, server.Addr, 2)
			taken := server.Accept(t, 2)
			l.queue(t, server.Addr, 2)
			time.Sleep(1200 * time.Millisecond) // a connection without a byte is idle after a second
			l.scan(t)
			now = now.Add(time.Second)
			require.Equal(t, model.StatusSaturated, only(t, l.scan(t)).Verdict.Status)

			now = now.Add(time.Second)
			l.overflow(t, server.Addr, before)
			l.Sample()
			server.Close()
			for _, c := range taken {
				require.NoError(t, c.Close())
			}
			l.Sample()
			between(t, l)
			server = l.listen(t, nettest.ListenOptions{Address: server.Addr.String(), Backlog: 1})
			l.queue(t, server.Addr, 2)
			l.overflow(t, server.Addr, after)
			l.Sample()
			snap := l.scan(t)
			got := only(t, snap)
			dropped := make(map[model.Cause]uint64)
			for key, n := range got.Totals.Dropped {
				dropped[key.Cause] += n
			}
			// One reading of the second does not count the slots that resets hold.
			require.Equal(t, map[model.Cause]uint64{model.CauseKeepAliveIdle: before, model.CauseAcceptQueue: after}, dropped)
			conserved(t, snap)
		})
	}
}

// One that comes and goes between two scans while nothing is remembered of it
// is not judged by the one that closed long before.
func TestDropsOfAServerThatNoScanSaw(t *testing.T) {
	l := newLab(t, func(o *Options) { o.Limits.MaxConnections = &model.Setting[int]{Value: 2, Kind: model.SourceFlag} })
	server := l.listen(t, nettest.ListenOptions{Backlog: 1})
	l.queue(t, server.Addr, 2)
	server.Accept(t, 2)
	l.scan(t)
	l.scan(t)
	server.Close()
	l.scan(t)
	l.scan(t)
	server = l.listen(t, nettest.ListenOptions{Address: server.Addr.String(), Backlog: 1})
	l.queue(t, server.Addr, 2)
	l.overflow(t, server.Addr, 5)
	_, err := l.lister.Namespaces.All[0].List(time.Now()) // as when another listener's counter moves
	require.NoError(t, err)
	server.Close()
	snap := l.scan(t)
	require.Len(t, snap.Retired, 1)
	for key, n := range snap.Retired[0].Totals.Dropped {
		require.Equal(t, model.CauseAcceptQueue, key.Cause, "%d", n)
	}
	conserved(t, snap)
}

// What was seen of the one before is no second look, and holds back nothing.
func TestVerdictOfARestartedServer(t *testing.T) {
	now := time.Now()
	l := newLab(t, func(o *Options) { o.Now = func() time.Time { return now } })
	l.looping.Store(true)
	stuck := l.listen(t, nettest.ListenOptions{Backlog: 1})
	address := nettest.ListenOptions{Address: stuck.Addr.String(), Backlog: 1}
	queue := func() *model.Listener {
		l.queue(t, stuck.Addr, 2)
		now = now.Add(time.Second)
		return only(t, l.scan(t))
	}
	require.Equal(t, model.StatusOK, queue().Verdict.Status, "one look")
	now = now.Add(time.Second)
	require.Equal(t, model.StatusSaturated, only(t, l.scan(t)).Verdict.Status)

	for range 2 {
		stuck.Close()
		now = now.Add(10 * time.Minute)
		l.scan(t)
		stuck = l.listen(t, address)
		now = now.Add(2 * time.Minute) // out of the window
		require.Equal(t, model.StatusOK, only(t, l.scan(t)).Verdict.Status)
	}
	require.Equal(t, model.StatusOK, queue().Verdict.Status, "one look at a full queue")
	now = now.Add(time.Second)
	require.Equal(t, model.StatusSaturated, only(t, l.scan(t)).Verdict.Status)
}

// Two listeners on one port, and one of them closes with clients queued: that is
// no business of the other's, unless it took its place.
func TestOneOfTwoListenersOnAPortCloses(t *testing.T) {
	l := newLab(t, nil)
	closes := l.listen(t, nettest.ListenOptions{Address: "127.0.0.2:0", Backlog: 5})
	port := closes.Addr.Port()
	on := func(address string) nettest.ListenOptions {
		return nettest.ListenOptions{Address: netip.AddrPortFrom(netip.MustParseAddr(address), port).String(), Backlog: 5}
	}
	stays := l.listen(t, on("127.0.0.1"))
	l.scan(t)
	l.queue(t, closes.Addr, 4)
	l.Sample()
	l.scan(t)
	closes.Close()
	l.Sample()
	got := only(t, l.scan(t))
	require.Equal(t, stays.Addr, got.ID.Address)
	require.Equal(t, model.StatusOK, got.Verdict.Status, got.Verdict.Summary)

	l.listen(t, on("127.0.0.3"))
	for _, got := range l.scan(t).Listeners {
		want := model.StatusOK
		if got.ID.Address != stays.Addr {
			want = model.StatusLosing
		}
		require.Equal(t, want, got.Verdict.Status, "%s: %s", got.ID, got.Verdict.Summary)
	}
}
