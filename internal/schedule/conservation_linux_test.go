package schedule

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// side is a server's namespace with a client's next to it.
type side struct {
	lab
	clients *nettest.NS
	address netip.Addr
	servers []*nettest.Listener
	floods  uint8
}

func newSide(t *testing.T) *side {
	t.Helper()
	s := &side{clients: nettest.Namespace(t)}
	s.NS, s.pid = namespaceWithProcess(t)
	_, s.address = nettest.Veth(t, s.clients, s.NS)
	for range 2 {
		s.servers = append(s.servers, s.fill(t, 0))
	}
	return s
}

// fill opens a listener on a port, or any, and fills its accept queue.
func (s *side) fill(t *testing.T, port uint16) *nettest.Listener {
	t.Helper()
	l := s.listen(t, nettest.ListenOptions{Address: netip.AddrPortFrom(s.address, port).String(), Backlog: 1})
	s.clients.Do(func() { nettest.Queue(t, l.Addr, 2) })
	return l
}

// flood sends SYNs to both listeners by turns; the queues are full, so the
// kernel drops each.
func (s *side) flood(t *testing.T, n int) {
	t.Helper()
	for ; n > 0; n -= 20_000 {
		s.floods++
		s.clients.Do(func() { nettest.HalfOpen(t, s.servers[int(s.floods)%2].Addr, s.floods, min(n, 20_000)) })
	}
}

// restart closes a listener and opens it again on its port.
func (s *side) restart(t *testing.T, i int) {
	t.Helper()
	port := s.servers[i].Addr.Port()
	s.servers[i].Close()
	s.servers[i] = s.fill(t, port)
}

// A million drops over four listeners in two namespaces, listeners that
// restart, an agent that stands still for five seconds: not one packet is lost
// or counted twice.
func TestLongMillionDropsAreConserved(t *testing.T) {
	a, b := newSide(t), newSide(t)
	s := a.sampler(t, func(o *Options) {
		o.Inside = []int{a.pid, b.pid}
		o.ScanInterval = 200 * time.Millisecond
		o.Window = time.Hour
	})
	require.NoError(t, s.Scan(context.Background()))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	const share = 130_000
	for round := range 4 {
		a.flood(t, share)
		b.flood(t, share)
		// What a listener dropped after it was last read is nobody's once it is closed.
		now := time.Now()
		require.Eventually(t, func() bool { return s.list.Load().At.After(now) }, time.Minute, time.Millisecond)
		switch round {
		case 0:
			a.restart(t, 0)
		case 1: // as SIGSTOP would: no clock gets anywhere
			stall, goOn := make(chan struct{}), make(chan struct{})
			go s.lister.Namespaces.All[0].Books(func(*losses.Books) { close(stall); <-goOn })
			<-stall
			started := time.Now()
			a.flood(t, share/2)
			b.restart(t, 1)
			b.flood(t, share/2)
			time.Sleep(time.Until(started.Add(5 * time.Second)))
			close(goOn)
		case 2:
			b.restart(t, 0)
			a.restart(t, 1)
		}
	}
	stop()
	require.NoError(t, <-done)
	require.NoError(t, s.Scan(context.Background()))
	require.NoError(t, s.Scan(context.Background())) // what was carried is settled
	snap := s.Snapshot()

	attributed := make(map[uint64]uint64)
	for i := range snap.Listeners {
		l := &snap.Listeners[i]
		for _, n := range l.Totals.Dropped {
			attributed[l.ID.NetNS] += n
		}
	}
	for _, gone := range snap.Retired {
		for _, n := range gone.Totals.Dropped {
			attributed[gone.ID.NetNS] += n
		}
	}
	var total uint64
	require.Len(t, snap.NetNS, 2)
	for _, ns := range snap.NetNS {
		kernel := ns.Delta["ListenDrops"]
		t.Logf("namespace %d: kernel %d, attributed %d, unattributed %d", ns.ID, kernel, attributed[ns.ID], ns.Unattributed)
		require.Equal(t, kernel, attributed[ns.ID]+ns.Unattributed, "namespace %d", ns.ID)
		require.Less(t, ns.Unattributed, kernel/10, "nearly all have a name")
		total += kernel
	}
	require.GreaterOrEqual(t, total, uint64(1_000_000))
	for i := range snap.Listeners {
		for key := range snap.Listeners[i].Totals.Dropped {
			require.NotEqual(t, model.CauseNone, key.Cause)
		}
	}
}

// What drops while a scan walks the table is in the counters of its snapshot, and
// so in its losses.
func TestDropsDuringAScan(t *testing.T) {
	s := newLab(t, nil)
	server := s.listen(t, nettest.ListenOptions{Backlog: 1})
	s.queue(t, server.Addr, 2)
	for _, drops := range []struct{ before, during int }{{0, 5}, {3, 7}, {0, 0}} {
		s.overflow(t, server.Addr, drops.before)
		s.Sample()
		require.NoError(t, s.relist(t.Context(), time.Second))
		require.NoError(t, s.readAll(t.Context(), s.list.Load()))
		s.overflow(t, server.Addr, drops.during)
		s.Sample()
		s.publish(true)
		snap := s.Snapshot()
		if losses := only(t, snap).Losses; losses != nil {
			require.Equal(t, snap.NetNS[0].Delta["ListenDrops"], losses.DroppedPackets)
		}
	}
	require.EqualValues(t, 15, only(t, s.Snapshot()).Losses.DroppedPackets)
}
