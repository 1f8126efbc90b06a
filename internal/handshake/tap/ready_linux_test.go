package tap

import (
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// watched is a pipe, as a socket would be, and what waits for its reading end.
func watched(t *testing.T) (r *ready, in, out *os.File) {
	var ends [2]int
	require.NoError(t, unix.Pipe2(ends[:], unix.O_CLOEXEC)) // os.Pipe's are watched by the runtime
	out, in = os.NewFile(uintptr(ends[0]), "out"), os.NewFile(uintptr(ends[1]), "in")
	t.Cleanup(func() { _, _ = in.Close(), out.Close() })
	r, err := watch(ends[0])
	require.NoError(t, err)
	t.Cleanup(r.close)
	return r, in, out
}

func TestReady(t *testing.T) {
	t.Parallel()
	r, in, out := watched(t)
	some := make([]byte, 1)
	for range 3 { // what has come before wait is asked for counts
		_, err := in.Write(some)
		require.NoError(t, err)
		timed, err := r.wait()
		require.NoError(t, err)
		require.False(t, timed)
	}
	require.NoError(t, r.setTimer(time.Hour))
	timed, err := r.wait() // nobody has read it
	require.NoError(t, err)
	require.False(t, timed)
	for range 3 {
		_, err := out.Read(some)
		require.NoError(t, err)
	}

	require.NoError(t, r.setTimer(20*time.Millisecond))
	timed, err = r.wait()
	require.NoError(t, err)
	require.True(t, timed)

	require.NoError(t, r.setTimer(0))
	time.AfterFunc(20*time.Millisecond, func() { _, _ = in.Write(some) })
	timed, err = r.wait()
	require.NoError(t, err)
	require.False(t, timed)
}

func TestReadyRests(t *testing.T) {
	t.Parallel()
	r, in, _ := watched(t)
	const long = 50 * time.Millisecond
	for range 3 {
		began := time.Now()
		time.AfterFunc(long/5, func() { _, _ = in.Write([]byte("x")) })
		require.NoError(t, r.rest(long))
		require.GreaterOrEqual(t, time.Since(began), long)
	}
	timed, err := r.wait()
	require.NoError(t, err)
	require.True(t, timed, "the timer is as it was left")
	require.NoError(t, r.setTimer(0))
	timed, err = r.wait()
	require.NoError(t, err)
	require.False(t, timed)
}

func TestReadyIsClosed(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(r *ready) error{
		"waiting": func(r *ready) error { _, err := r.wait(); return err },
		"resting": func(r *ready) error { return r.rest(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, _ := watched(t)
			ended := make(chan error, 1)
			go func() { ended <- wait(r) }()
			time.Sleep(10 * time.Millisecond)
			r.close()
			require.Error(t, <-ended)
			require.Error(t, wait(r))
			require.Error(t, r.setTimer(1))
			r.close()
		})
	}
	_, err := watch(math.MaxInt32)
	require.ErrorIs(t, err, unix.EBADF)
}

// A socket on which much arrives wakes nobody while it is let be, and a rest takes one
// wake-up. With the runtime's poller and timers each arrival takes one, and a rest three.
func TestReadyIsNotWoken(t *testing.T) {
	r, in, _ := watched(t)
	const arrivals, rest, rests = 200, 10 * time.Millisecond, 20
	fewest := arrivals
	for round := 0; round < 10 && fewest >= 2*rests; round++ { // the collector has to do, too
		writer := exec.Command("sh", "-c", "for i in $(seq 200); do echo; sleep 0.001; done")
		writer.Stdout = in
		require.NoError(t, writer.Start())
		fewest = min(fewest, proctest.Wakeups(t, func() {
			for range rests {
				require.NoError(t, r.rest(rest))
			}
		}))
		require.NoError(t, writer.Wait())
	}
	t.Logf("%d wake-ups for %d rests", fewest, rests)
	require.Less(t, fewest, 2*rests)
}
