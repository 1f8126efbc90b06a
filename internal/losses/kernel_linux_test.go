package losses

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// The kinds of packets rest on how the kernel counts each. Here each is sent
// alone, and read from the real counters.
func TestAttributionKindsOfTheKernel(t *testing.T) {
	server, client := nettest.Namespace(t), nettest.Namespace(t)
	addr, _ := nettest.Veth(t, server, client)
	k := newKernelReader(t, server)

	var a *Attribution
	told := func(do func()) map[model.Packet]uint64 {
		t.Helper()
		a = NewAttribution(k.settled())
		do()
		counts, sockets := k.settled()
		got, unattributed := a.Tick(counts, sockets, nil)
		require.Zero(t, unattributed)
		kinds := map[model.Packet]uint64{}
		for _, d := range got {
			require.False(t, d.Estimated)
			if d.SynQueue {
				kinds["at the SYN queue"] += d.Packets
				continue
			}
			kinds[d.Packet] += d.Packets
		}
		return kinds
	}
	type kinds = map[model.Packet]uint64

	// full leaves ten clients half-open in front of a full accept queue.
	full := func(t *testing.T, from uint16) (*nettest.Listener, *wire, []uint16, map[uint16]uint32) {
		t.Helper()
		var l *nettest.Listener
		server.Do(func() { l = nettest.Listen(t, nettest.ListenOptions{Address: addr.String() + ":0", Backlog: 20}) })
		w := newWire(t, client, l.Addr)
		ports, seq := w.openMany(from, 10)
		l.Relisten(t, 2) // three places
		for _, p := range ports[:3] {
			w.send(p, 1001, seq[p]+1, flagACK, "")
		}
		return l, w, ports[3:], seq
	}

	for _, abort := range []string{"0", "1"} {
		t.Run("tcp_abort_on_overflow="+abort, func(t *testing.T) {
			server.Sysctl(t, "net.ipv4.tcp_abort_on_overflow", abort)
			l, w, ports, seq := full(t, 4000)
			defer l.Close()
			require.Equal(t, kinds{model.PacketACK: 4}, told(func() {
				for _, p := range ports[:4] {
					w.send(p, 1001, seq[p]+1, flagACK, "")
				}
			}), "final ACKs")
			require.Equal(t, kinds{model.PacketSYN: 5}, told(func() {
				for p := range uint16(5) {
					w.send(5000+p, 1000, 0, flagSYN, "")
				}
			}), "SYNs")
			require.Empty(t, told(func() {
				w.send(ports[5], 1000, 0, flagSYN, "") // a duplicate
				w.send(ports[6], 1001, 0, flagRST, "") // the client gives up
			}), "what the socket alone counts")
		})
	}
	server.Sysctl(t, "net.ipv4.tcp_abort_on_overflow", "0")

	t.Run("data behind a dropped ACK", func(t *testing.T) {
		l, w, ports, seq := full(t, 6000)
		defer l.Close()
		require.Equal(t, kinds{model.PacketACK: 2}, told(func() {
			p := ports[0]
			w.send(p, 1001, seq[p]+1, flagACK, "")
			w.send(p, 1001, seq[p]+1, flagACK, "GET / HTTP/1.1\r\n\r\n")
		}))
	})
	t.Run("ACKs with a cookie", func(t *testing.T) {
		server.Sysctl(t, "net.ipv4.tcp_syncookies", "2")
		l, w, ports, seq := full(t, 7000)
		defer l.Close()
		require.Equal(t, kinds{model.PacketUnknown: 4}, told(func() {
			for _, p := range ports[:4] {
				w.send(p, 1001, seq[p]+1, flagACK, "")
			}
		}))
	})
	t.Run("SYNs at a full SYN queue without cookies", func(t *testing.T) {
		server.Sysctl(t, "net.ipv4.tcp_syncookies", "0")
		var l *nettest.Listener
		server.Do(func() { l = nettest.Listen(t, nettest.ListenOptions{Address: addr.String() + ":0", Backlog: 2}) })
		defer l.Close()
		// The SYN queue holds 2, or 3 since early 2025.
		got := told(func() { nettestSYNs(t, client, l, 10) })
		require.Contains(t, []uint64{7, 8}, got["at the SYN queue"])
		require.Len(t, got, 1)
	})
}

func nettestSYNs(t *testing.T, ns *nettest.NS, l *nettest.Listener, n int) {
	t.Helper()
	ns.Do(func() { nettest.HalfOpen(t, l.Addr, 9, n) })
}

// Two listeners overflow at once while the counters are read; one of them
// restarts meanwhile. Not one packet may be counted twice or get lost.
func TestAttributionConservesTheKernelsCount(t *testing.T) {
	ns := nettest.Namespace(t)
	k := newKernelReader(t, ns)
	listen := func(address string) (l *nettest.Listener) {
		ns.Do(func() {
			l = nettest.Listen(t, nettest.ListenOptions{Address: address, Backlog: 1})
			nettest.Queue(t, l.Addr, 2)
		})
		return l
	}
	first, second := listen("127.0.0.1:0"), listen("127.0.0.1:0")
	start, sockets := k.settled()
	a := NewAttribution(start, sockets)

	const each, rounds = 4000, 3
	stormy := func(l *nettest.Listener) func() {
		return func() { ns.Do(func() { nettest.Overflow(t, l.Addr, each) }) }
	}
	var attributed, unattributed uint64
	tick := func(counts NamespaceCounts, sockets []SocketDrops) {
		got, rest := a.Tick(counts, sockets, nil)
		for _, d := range got {
			attributed += d.Packets
		}
		unattributed += rest
	}
	for range rounds {
		var wg sync.WaitGroup
		wg.Go(stormy(first))
		wg.Go(stormy(second))
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for ticking := true; ticking; {
			select {
			case <-done:
				ticking = false
			default:
				tick(k.read())
			}
		}
		tick(k.settled()) // else the closing listener takes its last count along
		address := first.Addr.String()
		first.Close()
		first = listen(address)
	}
	counts, sockets := k.settled()
	tick(counts, sockets)
	drops := counts.ListenDrops - start.ListenDrops
	require.GreaterOrEqual(t, drops, uint64(2*each*rounds))
	require.Equal(t, drops, attributed+unattributed)
	// The readings follow each other without a pause, so that half of the drops
	// fall between the two of a tick, and with two listeners at once not every
	// one finds its own again. An agent's ticks are a hundred times further apart.
	require.LessOrEqual(t, unattributed, drops/5, "of %d", drops)
}
