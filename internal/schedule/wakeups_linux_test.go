package schedule

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/metronome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// A tick and its sample are one wake-up of one thread. With a Go ticker, or with
// calls that its scheduler is notified of, they are three.
func TestOneWakeupPerSample(t *testing.T) {
	l := newLab(t, nil)
	l.listen(t, nettest.ListenOptions{Backlog: 5})
	only(t, l.scan(t))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // see agent.LimitProcessors
	m, err := metronome.New(5 * time.Millisecond)
	require.NoError(t, err)
	defer m.Stop()
	const ticks, most = 200, 1.5
	fewest := float64(ticks)
	for rounds := 0; rounds < 10 && fewest >= most; rounds++ { // the collector and the test's own threads have to do, too
		n := proctest.Wakeups(t, func() {
			for range ticks {
				require.NoError(t, m.Wait())
				l.Sample()
			}
		})
		fewest = min(fewest, float64(n)/ticks)
	}
	t.Logf("%.2f wake-ups a sample", fewest)
	require.Less(t, fewest, most)
}

// While everything is calm the samples' clock wakes only where it is a turn, and at every
// tick again as soon as a client waits, or another interval is wanted.
func TestCalmIsWokenRarely(t *testing.T) {
	const interval, turns = 4 * time.Millisecond, 5
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, func(o *Options) { o.SampleInterval = interval })
	w.scanned()
	w.turns.every.Store(turns)
	w.pass(time.Minute)

	var err error
	w.tasks.metronome, err = metronome.New(interval)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	begun := time.Now()
	go func() { ended <- w.tasks.sample(ctx) }()
	time.Sleep(100 * interval)
	w.tasks.retime() // all else stays as it was
	time.Sleep(100 * interval)
	cancel()
	w.tasks.metronome.Stop()
	require.NoError(t, <-ended)
	require.LessOrEqual(t, w.turns.tick, 6+int(time.Since(begun)/(turns*interval)), "one tick before the first sample, one after the new interval")
	require.Equal(t, turns*interval, w.nextSample())

	k.listeners[0].RecvQ = 1
	w.Sample()
	require.Equal(t, interval, w.nextSample())
}
