package schedule

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// withListeners is a lab whose sampler has scanned twice: the first scan finds
// owners and opens files that the later ones have.
func withListeners(tb testing.TB, listeners, connections int) *lab {
	tb.Helper()
	l := newLab(tb, nil)
	l.Sysctl(tb, "net.core.somaxconn", "65535")
	for i := range listeners {
		server := l.listen(tb, nettest.ListenOptions{Backlog: 4096})
		if i == 0 {
			l.queue(tb, server.Addr, connections)
			server.Accept(tb, connections/2)
		}
	}
	for range 2 {
		require.NoError(tb, l.Scan(context.Background()))
	}
	return l
}

func BenchmarkSample(b *testing.B) {
	for _, n := range []int{1, 8, 100} {
		b.Run(fmt.Sprintf("listeners=%d", n), func(b *testing.B) {
			l := withListeners(b, n, 0)
			b.ReportAllocs()
			for b.Loop() {
				l.Sample()
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("sockets=%d", 2*n), func(b *testing.B) {
			l := withListeners(b, 1, n)
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, l.Scan(context.Background()))
			}
		})
	}
}

// readsAndWrites counts the read and write calls of this process so far
// (syscr and syscw of /proc/PID/io); this look itself is one.
func readsAndWrites(tb testing.TB) (reads, writes int) {
	tb.Helper()
	b, err := os.ReadFile("/proc/self/io")
	require.NoError(tb, err)
	field := func(name string) int {
		_, rest, ok := bytes.Cut(b, []byte(name+": "))
		require.True(tb, ok, name)
		digits, _, _ := bytes.Cut(rest, []byte("\n"))
		n, err := strconv.Atoi(string(digits))
		require.NoError(tb, err)
		return n
	}
	return field("syscr"), field("syscw")
}

// least is the fewest of several measurements: what else the process does meanwhile
// (the collector, what other tests left) can only add to a count.
func least(count func() float64) float64 {
	fewest := count()
	for range 2 {
		fewest = min(fewest, count())
	}
	return fewest
}

// callsPerRun is how many reads and writes one run takes.
func callsPerRun(tb testing.TB, runs int, fn func()) (reads, writes float64) {
	tb.Helper()
	own := func() (r, w int) { // what the counting itself takes
		r0, w0 := readsAndWrites(tb)
		r1, w1 := readsAndWrites(tb)
		return r1 - r0, w1 - w0
	}
	ownReads, ownWrites := own()
	r0, w0 := readsAndWrites(tb)
	for range runs {
		fn()
	}
	r1, w1 := readsAndWrites(tb)
	return float64(r1-r0-ownReads) / float64(runs), float64(w1-w0-ownWrites) / float64(runs)
}

// One send for all and one reply for each listener while they are few, one dump
// beyond; whatever else a sample did would be a system call too many.
func TestSystemCallsPerSample(t *testing.T) {
	tests := map[int]struct{ reads, writes float64 }{
		1:   {1, 1},
		8:   {8, 1},
		16:  {16, 1},
		100: {2, 1}, // the dump's end is a datagram of its own
	}
	for listeners, want := range tests {
		t.Run(strconv.Itoa(listeners), func(t *testing.T) {
			l := withListeners(t, listeners, 0)
			writes := math.Inf(1)
			reads := least(func() float64 {
				r, w := callsPerRun(t, 500, l.Sample)
				writes = min(writes, w)
				return r
			})
			require.InDelta(t, want.reads, reads, 0.1)
			require.InDelta(t, want.writes, writes, 0.1)
		})
	}
}

// What a scan reads besides the sockets is the same whether there is one
// listener of a process or a hundred, and ten sockets or two thousand; the walk
// itself takes a read for every 32 KiB.
func TestWorkPerScan(t *testing.T) {
	const (
		mostReads       = 52  // 43 on a quiet machine; on a busy one the states of six threads; each file of /proc is one or two
		mostWrites      = 4   // one for each of the three dumps, and the runtime's own
		mostAllocations = 830 // 690 on a quiet machine
		perListener     = 110 // allocations: its candidate, its snapshot, its verdict with its answer; 98 are seen, 159 were while the catalogue of causes was built for each
		perThousand     = 25  // reads: 1,000 sockets are 0.4 MB
	)
	tests := map[string]struct {
		listeners, connections     int
		reads, writes, allocations float64
	}{
		"one listener":          {1, 10, mostReads, mostWrites, mostAllocations},
		"a hundred":             {100, 10, mostReads + 3, mostWrites, mostAllocations + 100*perListener},
		"a thousand of clients": {1, 1000, mostReads + perThousand, mostWrites, mostAllocations + 60},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := withListeners(t, tt.listeners, tt.connections)
			scan := func() {
				l.scanner.ForgetConnections() // as if one had come, however large the host's table is
				require.NoError(t, l.Scan(context.Background()))
			}
			writes := math.Inf(1)
			reads := least(func() float64 {
				r, w := callsPerRun(t, 10, scan)
				writes = min(writes, w)
				return r
			})
			allocations := least(func() float64 { return testing.AllocsPerRun(10, scan) })
			t.Logf("%.1f reads, %.1f writes, %.0f allocations", reads, writes, allocations)
			require.LessOrEqual(t, reads, tt.reads)
			require.LessOrEqual(t, writes, tt.writes)
			if !raceDetector { // with which sync.Pool drops at random what fmt puts back
				require.LessOrEqual(t, allocations, tt.allocations)
			}
		})
	}
}
