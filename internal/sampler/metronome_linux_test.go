package sampler

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/nettest"
)

func newTestMetronome(t *testing.T, interval time.Duration) *metronome {
	t.Helper()
	m, err := newMetronome(interval)
	require.NoError(t, err)
	t.Cleanup(m.stop)
	return m
}

func TestMetronomeKeepsTime(t *testing.T) {
	start := time.Now()
	m := newTestMetronome(t, 2*time.Millisecond)
	for range 20 {
		require.True(t, m.wait())
	}
	require.GreaterOrEqual(t, time.Since(start), 40*time.Millisecond)

	time.Sleep(60 * time.Millisecond)
	start = time.Now()
	for range 10 {
		require.True(t, m.wait())
	}
	require.GreaterOrEqual(t, time.Since(start), 16*time.Millisecond, "one of the 30 missed ticks is made up for, and the next may be near")
}

func TestMetronomeChangesAtOnce(t *testing.T) {
	m := newTestMetronome(t, time.Hour)
	ticked := make(chan bool, 1)
	go func() { ticked <- m.wait() }()
	require.NoError(t, m.set(time.Millisecond))
	require.True(t, <-ticked)

	require.NoError(t, m.set(time.Hour))
	go func() { ticked <- m.wait() }()
	m.stop()
	require.False(t, <-ticked)
	require.False(t, m.wait())
	require.Error(t, m.set(time.Second))
}

func TestMetronomeAllocatesNothing(t *testing.T) {
	m := newTestMetronome(t, 100*time.Microsecond)
	require.Zero(t, testing.AllocsPerRun(100, func() { m.wait() }))
}

// One thread is woken for a tick and its sample, once. With a Go ticker, or
// with calls that its scheduler is told of, it is three.
func TestOneWakeupPerSample(t *testing.T) {
	l := newLab(t, nil)
	l.listen(t, nettest.ListenOptions{Backlog: 5})
	only(t, l.scan(t))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // see agent.LimitProcessors
	m := newTestMetronome(t, 5*time.Millisecond)
	const ticks = 200
	fewest := float64(ticks)
	for range 3 { // the collector and the test's own threads have to do, too
		before := wakeups(t)
		for range ticks {
			m.wait()
			l.Sample()
		}
		fewest = min(fewest, float64(wakeups(t)-before)/ticks)
	}
	t.Logf("%.2f wake-ups a sample", fewest)
	require.Less(t, fewest, 1.5)
}

// wakeups is how often threads of this process have gone to sleep so far.
func wakeups(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		_, after, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:\t")
		count, _, _ := strings.Cut(after, "\n")
		k, err := strconv.Atoi(count)
		require.NoError(t, err, "%s", text)
		n += k
	}
	return n
}
