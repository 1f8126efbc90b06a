package threads

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// runDelay sums what the present threads have waited.
func runDelay(fs hostproc.FS, pid int) (sum time.Duration, err error) {
	err = eachSchedule(fs, pid, func(_ int, s schedule) { sum += s.delay })
	return sum, err
}

func TestRunDelay(t *testing.T) {
	fs := hostfs.Real(t)
	c := proctest.Start(t, "threads", "a,b")
	got, err := runDelay(fs, c.PID())
	require.NoError(t, err)
	tasks, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(c.PID()), "task/*/schedstat"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(tasks), 3)
	var want time.Duration
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		require.NoError(t, err)
		s, err := parseSchedule(data)
		require.NoError(t, err)
		want += s.delay
	}
	after, err := runDelay(fs, c.PID())
	require.NoError(t, err)
	require.Positive(t, got)
	require.LessOrEqual(t, got, want, "no thread ends")
	require.LessOrEqual(t, want, after)
}

// The sum of a process's threads falls when one ends; the counter does not.
func TestRunDelayCounter(t *testing.T) {
	dir := proctest.Fake(t, map[string]string{
		"7/task/7/schedstat": "100 5000 3\n",
		"7/task/7/comm":      "http-nio-8080-e\n",
		"7/task/8/schedstat": "100 2000 3\n",
		"7/task/8/comm":      "http-nio-8080-e\n",
		"7/task/9/schedstat": "100 9000000 3\n",
		"7/task/9/comm":      "C2 CompilerThre\n", // no request waits for it
	})
	fs := hostfs.At(t, dir)
	counter := NewRunDelayCounter(fs, 7, &Load{})
	read := func(want time.Duration) {
		t.Helper()
		got, err := counter.Read(time.Time{})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	read(7000)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "7/task/8")))
	proctest.WriteTree(t, dir, map[string]string{"7/task/7/schedstat": "100 5500 4\n"})
	read(7500)
	proctest.WriteTree(t, dir, map[string]string{"7/task/8/schedstat": "1 30 1\n", "7/task/8/comm": "x\n", "7/task/7/schedstat": "1 40 1\n"})
	read(7570)

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "7")))
	got, err := counter.Read(time.Time{})
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
	require.Equal(t, time.Duration(7570), got, "an error leaves it alone")
}

// The kernel counts a wait when it has ended. A thread that could run, and was given no
// CPU since the last reading, has waited all that time; and none of it is counted twice.
func TestRunDelayOfAWaitThatLasts(t *testing.T) {
	const runs, sleeps = "7 (http-nio) S) R 1 7\n", "8 (http-nio) S 1 7\n"
	dir := proctest.Fake(t, map[string]string{
		"loadavg":            "9.00 9.00 9.00 9/300 4711\n",
		"7/task/7/schedstat": "100 5000 3\n", "7/task/7/comm": "http-nio-8080-e\n", "7/task/7/stat": runs,
		"7/task/8/schedstat": "100 2000 3\n", "7/task/8/comm": "http-nio-8080-e\n", "7/task/8/stat": sleeps,
		"7/task/9/schedstat": "100 0 3\n", "7/task/9/comm": "C2 CompilerThre\n", "7/task/9/stat": runs,
	})
	fs := hostfs.At(t, dir)
	counter, now := NewRunDelayCounter(fs, 7, &Load{}), time.Unix(1_700_000_000, 0)
	read := func(want time.Duration) {
		t.Helper()
		got, err := counter.Read(now)
		require.NoError(t, err)
		require.Equal(t, want, got)
		now = now.Add(time.Second)
	}
	read(7000)
	read(7000 + time.Second)
	read(7000 + 2*time.Second)
	proctest.WriteTree(t, dir, map[string]string{"7/task/7/schedstat": "200 2500005000 4\n"}) // it had waited for 2.5 s
	read(7000 + 2500*time.Millisecond)
	read(7000 + 3500*time.Millisecond)
	proctest.WriteTree(t, dir, map[string]string{"7/task/7/schedstat": "200 2900005000 5\n"}) // less than the clock said
	read(7000 + 3500*time.Millisecond)
	proctest.WriteTree(t, dir, map[string]string{"loadavg": "9.00 9.00 9.00 2/300 4711\n"}) // nobody waits
	read(7000 + 3500*time.Millisecond)
}

func TestRunDelayNotSupported(t *testing.T) {
	dir := proctest.Fake(t, map[string]string{
		"7/task/7/comm": "java\n",
		"7/stat":        captureStat,
	})
	fs := hostfs.At(t, dir)
	_, err := runDelay(fs, 7)
	require.ErrorIs(t, err, hostproc.ErrNotSupported, "a kernel without schedstat")
}

func TestParseSchedule(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"135642 16660 2\n": 16660,
		"0 0 0\n":          0,
		"1 2":              2,
	} {
		got, err := parseSchedule([]byte(in))
		require.NoError(t, err, in)
		require.Equal(t, want, got.delay, in)
	}
	for _, in := range []string{"", "\n", "1", "1 \n", "a b c", "1 x", "1 -2 3", "12x 3 4"} {
		_, err := parseSchedule([]byte(in))
		require.ErrorIs(t, err, hostproc.ErrMalformed, in)
	}
}

func FuzzParseSchedule(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("135642 16660 2\n"))
	m.Add([]byte("18446744073709551615 18446744073709551615 1\n"))
	m.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseSchedule(data)
		require.False(t, err == nil && s.delay < 0)
	})
}

const captureStat = "7 (java) S 1 7 7 0 -1 4194560 18151 0 5 0 142 33 0 0 20 0 22 0 262266 2667110400 10070 " +
	"18446744073709551615 93981402292224 93981402293001 140725433458720 0 0 0 0 2 16800972 0 0 0 17 1 0 0 0 0 0 " +
	"93981402304784 93981402305552 93981417988096 140725433466443 140725433466512 140725433466512 140725433470926 0\n"

// Of the processes that are read together the first asks for all.
func TestLoadIsReadOnce(t *testing.T) {
	dir := proctest.Fake(t, map[string]string{"loadavg": "9.00 9.00 9.00 3/300 4711\n"})
	fs := hostfs.At(t, dir)
	load, now := &Load{}, time.Unix(1_700_000_000, 0)
	require.True(t, load.someWait(fs, now))
	proctest.WriteTree(t, dir, map[string]string{"loadavg": "9.00 9.00 9.00 2/300 4711\n"})
	require.True(t, load.someWait(fs, now.Add(fresh-1)))
	require.False(t, load.someWait(fs, now.Add(fresh)))
	proctest.WriteTree(t, dir, map[string]string{"loadavg": "9.00 9.00 9.00 3/300 4711\n"})
	require.True(t, load.someWait(fs, now), "the clock was set back")
	proctest.WriteTree(t, dir, map[string]string{"loadavg": "none\n"})
	require.False(t, load.someWait(fs, now.Add(fresh)))
}
