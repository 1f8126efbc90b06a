package sockdiag

import (
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// benchConnections is how many connections the benchmarks' scan finds; as many
// belong to the clients and do not match.
const benchConnections = 2000

// table is a namespace with a listener that has connections.
func table(tb testing.TB, connections int) (*Conn, ListenerID) {
	tb.Helper()
	ns := nettest.Namespace(tb)
	ns.Sysctl(tb, "net.core.somaxconn", strconv.Itoa(connections))
	var c *Conn
	var addr netip.AddrPort
	ns.Do(func() {
		l := nettest.Listen(tb, nettest.ListenOptions{Backlog: connections})
		addr = l.Addr
		nettest.Queue(tb, l.Addr, connections)
		var err error
		c, err = Dial()
		require.NoError(tb, err)
	})
	tb.Cleanup(func() { _ = c.Close() })
	return c, ListenerID{Family: FamilyIPv4, Local: addr}
}

// bare sends a prepared request and reads its replies up to the last, as a
// program would that does nothing else.
func bare(tb testing.TB, c *Conn, request, buffer []byte, dump bool) {
	if _, err := unix.Write(c.sock.fd, request); err != nil {
		tb.Fatal(err)
	}
	for {
		n, err := unix.Read(c.sock.fd, buffer)
		if err != nil {
			tb.Fatal(err)
		}
		if !dump || lastIsDone(buffer[:n]) {
			return
		}
	}
}

// lastIsDone looks at the one place where NLMSG_DONE stands: at the end.
func lastIsDone(b []byte) bool {
	const doneLen = nlmsgHeaderLen + 4
	return len(b) >= doneLen && b[len(b)-doneLen] == doneLen && b[len(b)-doneLen+4] == nlmsgDone
}

// compare runs both by turns, so that what else the machine does meets both,
// and reports how many times the median of bare ours takes.
func compare(b *testing.B, batch int, bare, ours func()) {
	b.Helper()
	b.ReportAllocs()
	var bareTimes, ourTimes []time.Duration
	timed := func(f func()) time.Duration {
		start := time.Now()
		for range batch {
			f()
		}
		return time.Since(start)
	}
	for b.Loop() {
		bareTimes = append(bareTimes, timed(bare))
		ourTimes = append(ourTimes, timed(ours))
	}
	slices.Sort(bareTimes)
	slices.Sort(ourTimes)
	bareMedian, ourMedian := bareTimes[len(bareTimes)/2], ourTimes[len(ourTimes)/2]
	b.ReportMetric(float64(ourMedian)/float64(bareMedian), "x-bare")
	b.ReportMetric(float64(ourMedian.Nanoseconds())/float64(batch), "ns/call")
	b.ReportMetric(0, "ns/op") // both together: means nothing
}

// BenchmarkLookup: the budget is 1.5 x-bare.
func BenchmarkLookup(b *testing.B) {
	c, id := table(b, 1)
	request := appendLookup(nil, id)
	finish(request, 1)
	buffer := make([]byte, bufferLen)
	var l Listener
	compare(b, 100, func() { bare(b, c, request, buffer, false) }, func() {
		if err := c.Lookup(id, 0, &l); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkLookupEach: bare is one send and one read for each of eight.
func BenchmarkLookupEach(b *testing.B) {
	c, id := table(b, 1)
	request := appendLookup(nil, id)
	finish(request, 1)
	buffer := make([]byte, bufferLen)
	asks := slices.Repeat([]Ask{{ID: id}}, 8)
	answer := func(_ int, _ *Listener, err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	compare(b, 20, func() {
		for range asks {
			bare(b, c, request, buffer, false)
		}
	}, func() {
		if err := c.LookupEach(asks, answer); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkScan: the budget is 1.2 x-bare, at the worst case that every socket
// of the table but the clients' ends is wanted.
func BenchmarkScan(b *testing.B) {
	c, id := table(b, benchConnections)
	for name, ports := range map[string][]uint16{
		"one port":   {id.Local.Port()},
		"five ports": {1, 3, 5, 7, id.Local.Port()},
	} {
		b.Run(name, func(b *testing.B) {
			n := 0
			count := func(s *Socket) error {
				if s.HasInfo {
					n++
				}
				return nil
			}
			ours := func() {
				if err := c.Sockets(ports, Connected(), count); err != nil {
					b.Fatal(err)
				}
			}
			ours()
			require.Equal(b, benchConnections, n)
			request := append([]byte(nil), c.out...)
			buffer := make([]byte, bufferLen)
			compare(b, 1, func() { bare(b, c, request, buffer, true) }, ours)
		})
	}
}

func BenchmarkListeners(b *testing.B) {
	c, _ := table(b, benchConnections)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Listeners(func(*Listener) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	c, id := table(t, 1)
	var l Listener
	require.NoError(t, c.Lookup(id, 0, &l))
	require.Zero(t, testing.AllocsPerRun(200, func() {
		if err := c.Lookup(id, l.Inode, &l); err != nil {
			t.Error(err)
		}
	}))
}

func TestLookupEachAllocatesNothing(t *testing.T) {
	c, id := table(t, 1)
	asks := slices.Repeat([]Ask{{ID: id}}, maxBatch+1)
	found := 0
	answer := func(_ int, l *Listener, err error) {
		if err == nil && l.ListenerID == id {
			found++
		}
	}
	require.NoError(t, c.LookupEach(asks, answer))
	require.Equal(t, len(asks), found)
	require.Zero(t, testing.AllocsPerRun(200, func() {
		if err := c.LookupEach(asks, answer); err != nil {
			t.Error(err)
		}
	}))
}

// TestWalkAllocations: the same few whether there are ten sockets or a thousand.
func TestWalkAllocations(t *testing.T) {
	allocations := func(connections int) (scan, dump float64) {
		c, id := table(t, connections)
		ports := []uint16{1, 3, 5, id.Local.Port()}
		seen := 0
		count := func(*Socket) error { seen++; return nil }
		scan = testing.AllocsPerRun(50, func() {
			seen = 0
			if err := c.Sockets(ports, Connected(), count); err != nil || seen != connections {
				t.Error(err, seen)
			}
		})
		dump = testing.AllocsPerRun(50, func() {
			if err := c.Probe(); err != nil {
				t.Error(err)
			}
		})
		return scan, dump
	}
	fewScan, fewDump := allocations(10)
	manyScan, manyDump := allocations(1000)
	require.Equal(t, fewScan, manyScan)
	require.Equal(t, fewDump, manyDump)
	require.LessOrEqual(t, manyScan, 4.0)
	require.LessOrEqual(t, manyDump, 4.0)
}
