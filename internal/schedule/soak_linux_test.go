package schedule

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// soakTime is how long the soak lasts.
func soakTime() time.Duration { return proof.Size(30*time.Minute, 4*time.Second) }

// A thousand samples a second while listeners come and go, on ports old and
// new, with clients in their queues: nothing grows. The first half is the time
// to reach what stays.
func TestSoak(t *testing.T) {
	const kept = 20 // totals of closed listeners: full early on
	l := newLab(t, func(o *Options) {
		o.SampleInterval, o.ScanInterval, o.MaxListeners = time.Millisecond, 100*time.Millisecond, kept
		o.Window = 2 * time.Second
	})
	total := soakTime()
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	servers := &churn{}
	defer servers.end()

	began := time.Now()
	var middle, last state
	l.Do(func() {
		servers.stays(t)
		servers.until(t, began.Add(total/2))
		middle = stateNow(t)
		servers.until(t, began.Add(total))
		require.EventuallyWithT(t, func(t *assert.CollectT) { // a scan under way holds more than none; a leak stays
			last = stateNow(t)
			assert.Less(t, last.heap, middle.heap+2<<20, "bytes of heap")
			assert.Less(t, last.resident, middle.resident+16<<20, "bytes resident")
			assert.LessOrEqual(t, last.goroutines, middle.goroutines+2) // one is EventuallyWithT's
			assert.LessOrEqual(t, last.descriptors, middle.descriptors+2)
		}, time.Minute, 50*time.Millisecond)
	})
	stop()
	require.NoError(t, <-ran)

	seconds := total.Seconds() / 2
	snap := l.Snapshot()
	t.Logf("%d listeners came and went; %d samples, %d ticks missed, %d scans", servers.opened, snap.Self.SampleSeconds.Count, snap.Self.MissedTicks, snap.Self.ScanSeconds.Count)
	t.Logf("heap %d KiB, then %d KiB; resident %d MiB; %d goroutines; %d descriptors", middle.heap>>10, last.heap>>10, last.resident>>20, last.goroutines, last.descriptors)
	t.Logf("%.0f objects/s, %.0f KiB/s allocated; %d collections, longest pause %v", float64(last.objects-middle.objects)/seconds,
		float64(last.bytes-middle.bytes)/seconds/1024, last.collections-middle.collections, last.longestPause)

	require.LessOrEqual(t, len(snap.Retired), kept)
	require.Greater(t, snap.Self.SampleSeconds.Count+snap.Self.MissedTicks, uint64(total.Seconds()*500), "ticks taken or counted as missed")
}

// churn opens and closes listeners, some on a port that was used before, with
// a client waiting in each. It goes without nettest's own, which remember what
// they opened until the test ends.
type churn struct {
	open   []listening
	opened int
	steady []listening
}

type listening struct{ server, client int }

// atOnce is how many listeners there are.
const atOnce = 8

// stays opens one that outlives the others: where nothing listens no sample is
// taken until the next scan, which comes late on a busy machine.
func (c *churn) stays(t *testing.T) { c.steady = append(c.steady, c.listen(t, 0)) }

func (c *churn) until(t *testing.T, end time.Time) {
	t.Helper()
	for time.Now().Before(end) {
		if len(c.open) == atOnce {
			c.open[0].close()
			c.open = append(c.open[:0], c.open[1:]...)
		}
		port := 0 // any
		if c.opened%3 != 0 {
			port = 9000 + c.opened%(2*atOnce)
		}
		c.open = append(c.open, c.listen(t, port))
		c.opened++
		time.Sleep(15 * time.Millisecond)
	}
}

func (c *churn) listen(t *testing.T, port int) (l listening) {
	t.Helper()
	l.server, l.client = tcp(t), tcp(t)
	require.NoError(t, unix.SetsockoptInt(l.server, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	require.NoError(t, unix.Bind(l.server, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(l.server, 4))
	address, err := unix.Getsockname(l.server)
	require.NoError(t, err)
	require.NoError(t, unix.Connect(l.client, address))
	return l
}

func tcp(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	return fd
}

func (l listening) close() {
	_ = unix.Close(l.server)
	_ = unix.Close(l.client)
}

func (c *churn) end() {
	for _, l := range slices.Concat(c.steady, c.open) {
		l.close()
	}
}

// state is what must not grow, and what a collection costs.
type state struct {
	heap, resident, objects, bytes uint64
	goroutines, descriptors        int
	collections                    int64
	longestPause                   time.Duration
}

func stateNow(t require.TestingT) (s state) {
	s.descriptors, s.goroutines, s.heap = usage(t)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.objects, s.bytes = m.Mallocs, m.TotalAlloc
	gc := debug.GCStats{PauseQuantiles: make([]time.Duration, 2)}
	debug.ReadGCStats(&gc)
	s.collections, s.longestPause = gc.NumGC, gc.PauseQuantiles[1]
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kilobytes, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	s.resident = kilobytes << 10
	return s
}
