package sockdiag_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// TestSynRecv: request sockets (TCP_NEW_SYN_RECV) are selected by the bit of
// SYN_RECV and reported as such, without tcp_info, by either way of filtering.
func TestSynRecv(t *testing.T) {
	a, b := nettest.Namespace(t), nettest.Namespace(t)
	_, server := nettest.Veth(t, a, b)
	l := listen(t, b, nettest.ListenOptions{Address: server.String() + ":0", Backlog: 50})
	dual := listen(t, b, nettest.ListenOptions{Address: "[::]:0", Backlog: 50})
	a.Do(func() {
		nettest.HalfOpen(t, l.Addr, 1, 20)
		nettest.HalfOpen(t, netip.AddrPortFrom(server, dual.Addr.Port()), 2, 10)
	})
	c := dial(t, b)
	count := func(ports ...uint16) (half int) {
		for _, s := range sockets(t, c, ports...) {
			require.Equal(t, sockdiag.SynRecv, s.State)
			require.False(t, s.HasInfo)
			require.Zero(t, s.Inode)
			half++
		}
		return half
	}
	// Behind a busy CPU the softirqs that deliver the SYNs come a little later.
	require.Eventually(t, func() bool {
		return count(l.Addr.Port(), dual.Addr.Port()) == 30
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, 20, count(l.Addr.Port()))
	require.Equal(t, 10, count(dual.Addr.Port()))
	for _, got := range listeners(t, c) {
		require.Zero(t, got.RecvQ, "half-open connections are not in the accept queue")
	}
}

// TestStatesOfAConnection follows connections of one listener into every state
// that a scan reports and this side can be brought to.
func TestStatesOfAConnection(t *testing.T) {
	ns := nettest.Namespace(t)
	l := listen(t, ns, nettest.ListenOptions{Backlog: 20})
	c := dial(t, ns)
	ns.Do(func() {
		clients := nettest.Queue(t, l.Addr, 6)
		accepted := l.Accept(t, 6)
		write := func(i int, s string) { _, err := clients[i].Write([]byte(s)); require.NoError(t, err) }
		write(0, "twelve bytes")                   // stays: waiting
		require.NoError(t, clients[1].Close())     // CLOSE_WAIT
		require.NoError(t, accepted[2].Close())    // FIN_WAIT2
		require.NoError(t, accepted[3].Close())    // TIME_WAIT
		require.NoError(t, clients[3].Close())     //
		_, err := accepted[4].Write([]byte("abc")) // answered
		require.NoError(t, err)
		nettest.Queue(t, l.Addr, 1) // in the accept queue
	})
	want := map[string]int{"ESTABLISHED": 4, "CLOSE_WAIT": 1, "FIN_WAIT2": 1, "TIME_WAIT": 1}
	require.Eventually(t, func() bool { // the ACK of a FIN may be delayed
		byState := map[string]int{}
		for _, s := range sockets(t, c, l.Addr.Port()) {
			byState[s.State.String()]++
		}
		return maps.Equal(want, byState)
	}, time.Minute, 5*time.Millisecond)
	var queued int
	for _, s := range sockets(t, c, l.Addr.Port()) {
		switch {
		case s.State == sockdiag.TimeWait, s.State == sockdiag.FinWait2:
			require.False(t, s.HasInfo)
			require.Zero(t, s.Inode)
		case s.State == sockdiag.CloseWait:
			require.EqualValues(t, 1, s.RecvQ, "the FIN counts one")
			require.NotZero(t, s.Inode)
		case s.State == sockdiag.Established && s.Inode == 0:
			queued++
		case s.State == sockdiag.Established && s.RecvQ > 0:
			require.EqualValues(t, 12, s.RecvQ)
			require.EqualValues(t, 12, s.Info.BytesReceived)
			require.EqualValues(t, 1, s.Info.DataSegsIn)
		case s.State == sockdiag.Established && s.Info.BytesSent > 0:
			require.EqualValues(t, 3, s.Info.BytesSent)
			require.EqualValues(t, 3, s.Info.BytesAcked)
			require.EqualValues(t, 1, s.Info.DataSegsOut)
		}
	}
	require.Equal(t, 1, queued)
}

// TestLastDataSentIsTheWait: whatever the client sends meanwhile, a queued
// connection's last_data_sent is its age.
func TestLastDataSentIsTheWait(t *testing.T) {
	ns := nettest.Namespace(t)
	l := listen(t, ns, nettest.ListenOptions{Backlog: 20})
	c := dial(t, ns)
	start := time.Now()
	var write func()
	ns.Do(func() {
		client := nettest.Queue(t, l.Addr, 1)[0]
		write = func() { _, err := client.Write([]byte("x")); require.NoError(t, err) }
	})
	queued := time.Now()
	for time.Since(queued) < 300*time.Millisecond {
		write()
		time.Sleep(20 * time.Millisecond)
	}
	write()
	s := sockets(t, c, l.Addr.Port())[0]
	const jiffy = 10 * time.Millisecond // of the slowest clock, HZ=100
	require.GreaterOrEqual(t, s.Info.LastDataSent, 300*time.Millisecond-jiffy)
	require.LessOrEqual(t, s.Info.LastDataSent, time.Since(start)+jiffy)
	require.Less(t, s.Info.LastDataRecv, s.Info.LastDataSent)
}

// TestManyPorts compares the kernel's filtering by bytecode with the plain
// choice, for sets of ports of many sizes and both families in one walk.
func TestManyPorts(t *testing.T) {
	ns := nettest.Namespace(t)
	var open []uint16
	ns.Do(func() {
		for i := range 100 {
			host := []string{"127.0.0.1", "[::1]", "[::]", "[::ffff:127.0.0.1]"}[i%4]
			l := nettest.Listen(t, nettest.ListenOptions{Address: fmt.Sprintf("%s:%d", host, 20000+3*i), Backlog: 5})
			open = append(open, l.Addr.Port())
			addr := l.Addr
			if strings.Contains(host, "ffff") || host == "[::]" {
				addr = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Addr.Port())
			}
			nettest.Queue(t, addr, 2)
		}
	})
	c := dial(t, ns)
	sparse := func(n, step int) (ports []uint16) {
		for i := range n {
			ports = append(ports, uint16(10000+i*step))
		}
		return ports
	}
	for _, test := range []struct {
		name  string
		ports []uint16
	}{
		{"one", open[:1]},
		{"two", open[:2]},
		{"three of nobody", []uint16{1, 5, 9}},
		{"all open", open},
		{"300, every second", sparse(300, 2)},
		{"300 and the open ones", append(sparse(300, 2), open...)},
		{"a run", sparse(15000, 1)},
		{"runs and singles", append(sparse(11000, 1), open[50:]...)},
		{"more than the bytecode holds", sparse(5000, 7)},
		{"both ends", []uint16{0, 65535}},
		{"everything", everyPort()},
		{"unsorted with repetitions", []uint16{open[7], open[3], open[7], 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			wanted := map[uint16]bool{}
			for _, p := range test.ports {
				wanted[p] = true
			}
			want, got := map[uint16]int{}, map[uint16]int{}
			for _, p := range open {
				if wanted[p] {
					want[p] = 2
				}
			}
			for _, s := range sockets(t, c, test.ports...) {
				if s.Local.Port() < 30000 { // not the clients' ends
					got[s.Local.Port()]++
				}
			}
			require.Equal(t, want, got)
		})
	}
}

func everyPort() []uint16 {
	ports := make([]uint16, 1<<16)
	for i := range ports {
		ports[i] = uint16(i)
	}
	return ports
}

func TestNoPorts(t *testing.T) {
	c := dial(t, nettest.Namespace(t))
	require.ErrorIs(t, c.Sockets(nil, sockdiag.Connected(), nil), sockdiag.ErrNoPorts)
}

func TestCallbackErrorEndsTheWalk(t *testing.T) {
	ns := nettest.Namespace(t)
	l := listen(t, ns, nettest.ListenOptions{Backlog: 1000})
	c := dial(t, ns)
	queue(t, ns, l.Addr, 400) // several datagrams
	stop, calls := errors.New("enough"), 0
	for range 3 {
		calls = 0
		require.Same(t, stop, c.Sockets([]uint16{l.Addr.Port()}, sockdiag.Connected(), func(*sockdiag.Socket) error {
			calls++
			return stop
		}))
		require.Equal(t, 1, calls)
	}
	require.Len(t, sockets(t, c, l.Addr.Port()), 400, "the next walk is whole")
}
