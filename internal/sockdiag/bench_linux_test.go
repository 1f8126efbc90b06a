package sockdiag

import (
	"errors"
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

// lastIsDone checks the one place where NLMSG_DONE stands: at the end.
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

// BenchmarkLookupConnections: bare is one send and one read for each of 32. Both
// stay the same whatever the table holds.
func BenchmarkLookupConnections(b *testing.B) {
	for _, connections := range []int{maxBatch, benchConnections} {
		b.Run(strconv.Itoa(connections), func(b *testing.B) {
			c, ids := connected(b, connections)
			ids = ids[:maxBatch]
			requests := make([][]byte, len(ids))
			for i := range ids {
				requests[i] = appendConnection(nil, &ids[i], extension(diagInfo))
				finish(requests[i], 1)
			}
			buffer := make([]byte, bufferLen)
			answer := func(_ int, s *Socket, err error) {
				if err != nil || !s.HasInfo {
					b.Fatal(err)
				}
			}
			compare(b, 10, func() {
				for _, request := range requests {
					bare(b, c, request, buffer, false)
				}
			}, func() {
				if err := c.LookupConnections(ids, true, answer); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// connected are a table's connections by what finds them again.
func connected(tb testing.TB, n int) (*Conn, []ConnectionID) {
	c, id := table(tb, n)
	var ids []ConnectionID
	require.NoError(tb, c.Sockets([]uint16{id.Local.Port()}, Connected(), func(s *Socket) error {
		ids = append(ids, s.ID())
		return nil
	}))
	require.Len(tb, ids, n)
	return c, ids
}

// BenchmarkEverything compares the ways to the watched connections with tcp_info
// and as many outgoing ones without a use for it.
func BenchmarkEverything(b *testing.B) {
	c, id := table(b, benchConnections)
	watched, outgoing, both := PortsOf(id.Local.Port()), new(Ports), new(Ports)
	outgoing.AddRange(1024, 65535)
	outgoing.Remove(id.Local.Port())
	both.AddRange(1024, 65535)
	walk := func(b *testing.B, w Wanted, want int) {
		n := 0
		w.States = Connected()
		if err := c.Walk(w, func(*Socket) error { n++; return nil }); err != nil || n != want {
			b.Fatal(err, n)
		}
	}
	b.Run("one walk with tcp_info", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			walk(b, Wanted{Ports: both, Info: true}, 2*benchConnections)
		}
	})
	b.Run("two walks", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			walk(b, Wanted{Ports: watched, Info: true}, benchConnections)
			walk(b, Wanted{Ports: outgoing}, benchConnections)
		}
	})
	b.Run("one walk without and exact requests", func(b *testing.B) {
		b.ReportAllocs()
		ids := make([]ConnectionID, 0, benchConnections)
		for b.Loop() {
			ids = ids[:0]
			err := c.Walk(Wanted{Ports: both, States: Connected()}, func(s *Socket) error {
				if watched.Has(s.Local.Port()) {
					ids = append(ids, s.ID())
				}
				return nil
			})
			if err == nil {
				err = c.LookupConnections(ids, true, func(int, *Socket, error) {})
			}
			if err != nil || len(ids) != benchConnections {
				b.Fatal(err, len(ids))
			}
		}
	})
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

// TestLookupConnectionsAllocatesNothing: nor for those that have ended.
func TestLookupConnectionsAllocatesNothing(t *testing.T) {
	c, ids := connected(t, 2*maxBatch+1)
	ids[3].Cookie++
	found, ended := 0, 0
	answer := func(_ int, s *Socket, err error) {
		switch {
		case err == nil && s.HasInfo:
			found++
		case errors.Is(err, ErrNotFound):
			ended++
		}
	}
	require.NoError(t, c.LookupConnections(ids, true, answer))
	require.Equal(t, []int{len(ids) - 1, 1}, []int{found, ended})
	quiet := func(int, *Socket, error) {}
	require.Zero(t, testing.AllocsPerRun(200, func() {
		if err := c.LookupConnections(ids, true, quiet); err != nil {
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
		scan = leastAllocations(func() {
			seen = 0
			if err := c.Sockets(ports, Connected(), count); err != nil || seen != connections {
				t.Error(err, seen)
			}
		})
		dump = leastAllocations(func() {
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

// leastAllocations is the fewest of several measurements: what else the process does
// meanwhile can only add to the count.
func leastAllocations(fn func()) float64 {
	fewest := testing.AllocsPerRun(50, fn)
	for range 2 {
		fewest = min(fewest, testing.AllocsPerRun(50, fn))
	}
	return fewest
}
