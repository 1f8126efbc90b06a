package hostproc

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The table of this architecture is the kernel's own.
func TestCallNumbers(t *testing.T) {
	numbers, ok := callsOf("amd64")
	if unix.SYS_FUTEX != numbers.futex {
		numbers, ok = callsOf("arm64")
	}
	require.True(t, ok)
	require.Equal(t, unix.SYS_FUTEX, numbers.futex)
	require.Equal(t, unix.SYS_ACCEPT, numbers.accept)
	require.Equal(t, unix.SYS_ACCEPT4, numbers.accept4)
	require.Equal(t, unix.SYS_PPOLL, numbers.ppoll)
	require.Equal(t, unix.SYS_EPOLL_PWAIT, numbers.epollPwait)
	require.Equal(t, unix.SYS_EPOLL_PWAIT2, numbers.epollPwait2)
	require.Equal(t, unix.SYS_NANOSLEEP, numbers.nanosleep)
	require.Equal(t, unix.SYS_CLOCK_NANOSLEEP, numbers.clockNanosleep)
}

// acceptThread is a thread of ours in accept(2), and its socket's inode.
func acceptThread(t *testing.T) (tid int, port uint16, inode uint32) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(fd, 1))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &st))
	started, ended := make(chan int), make(chan struct{})
	go func() { // the runtime keeps a thread that blocks in a raw call
		started <- unix.Gettid()
		_, _, _ = unix.Accept(fd)
		close(ended)
	}()
	tid = <-started
	t.Cleanup(func() {
		require.NoError(t, unix.Shutdown(fd, unix.SHUT_RDWR))
		<-ended
		require.NoError(t, unix.Close(fd))
	})
	return tid, uint16(name.(*unix.SockaddrInet4).Port), uint32(st.Ino)
}

func TestFindAcceptorInAccept(t *testing.T) {
	fs := realProc(t)
	tid, port, inode := acceptThread(t)
	require.Eventually(t, func() bool {
		found, err := fs.FindAcceptor(os.Getpid(), port, inode, nil)
		return err == nil && found == tid
	}, time.Minute, time.Millisecond)
	_, err := fs.FindAcceptor(os.Getpid(), port, inode+1, nil)
	require.ErrorIs(t, err, ErrUnclear)
	_, err = fs.FindAcceptor(math.MaxInt32, port, inode, nil)
	require.ErrorIs(t, err, ErrGone)
}

func TestKeptThread(t *testing.T) {
	fs := realProc(t)
	tid, _, _ := acceptThread(t)
	kept, err := fs.KeepThread(os.Getpid(), tid)
	require.NoError(t, err)
	defer kept.Close()
	require.NoError(t, kept.CallErr())
	var th Thread
	require.Eventually(t, func() bool { return kept.Read(&th) == nil && th.Call.Kind == CallAccept }, time.Minute, time.Millisecond)
	require.EqualValues(t, 'S', th.State)
	require.Positive(t, th.Ran)
	again := th
	require.Eventually(t, func() bool { // the runtime may send its threads a signal
		return kept.Read(&th) == nil && kept.Read(&again) == nil && th == again
	}, time.Minute, time.Millisecond, "it has not run")

	require.Zero(t, testing.AllocsPerRun(100, func() { _ = kept.Read(&th) }))
	require.Equal(t, 3, reads(t, func() { _ = kept.Read(&th) }), "schedstat, status, syscall")

	child := startChild(t, "wait", "").pid()
	kept, err = fs.KeepThread(child, child)
	require.NoError(t, err)
	defer kept.Close()
	require.NoError(t, syscall.Kill(child, syscall.SIGSTOP))
	require.Eventually(t, func() bool { return kept.Read(&th) == nil && th.Stopped() }, time.Minute, time.Millisecond)
	require.NoError(t, syscall.Kill(child, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		err := kept.Read(&th)
		return err == ErrGone || err == nil && th.State == 'Z' //nolint:errorlint // exactly
	}, time.Minute, time.Millisecond)
}

// reads counts the read calls of a function, by the kernel's own count of this
// thread, which the function must not leave.
func reads(t *testing.T, fn func()) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	count := func() int {
		data, err := os.ReadFile("/proc/thread-self/io")
		if err != nil {
			t.Skip("the kernel does not count reads: ", err)
		}
		_, rest, _ := strings.Cut(string(data), "syscr: ")
		n, err := strconv.Atoi(rest[:strings.IndexByte(rest, '\n')])
		require.NoError(t, err)
		return n
	}
	idle := -count() + count()
	return -count() + func() int { fn(); return count() }() - idle
}

func TestKeptFiles(t *testing.T) {
	fs := realProc(t)
	kept, err := fs.KeepFiles(os.Getpid())
	require.NoError(t, err)
	defer kept.Close()
	now := time.Now()
	before, age, err := kept.Open(now)
	require.NoError(t, err)
	require.Zero(t, age)
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	if fs.CountsOpenFiles() {
		after, _, err := kept.Open(now)
		require.NoError(t, err)
		require.Equal(t, before+1, after)
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = kept.Open(now); _, _ = kept.Limit() }))
	}
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	got, err := kept.Limit()
	require.NoError(t, err)
	require.EqualValues(t, limit.Cur, got)
}

// Before Linux 6.2 the files are listed, once a second at most.
func TestKeptFilesListed(t *testing.T) {
	fs := realProc(t)
	fs.fdCount = false
	kept, err := fs.KeepFiles(os.Getpid())
	require.NoError(t, err)
	defer kept.Close()
	now := time.Now()
	first, age, err := kept.Open(now)
	require.NoError(t, err)
	require.Zero(t, age)
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	n, age, err := kept.Open(now.Add(listEvery - 1))
	require.NoError(t, err)
	require.Equal(t, first, n)
	require.Equal(t, listEvery-1, age)
	n, age, err = kept.Open(now.Add(listEvery))
	require.NoError(t, err)
	require.Equal(t, first+1, n)
	require.Zero(t, age)
}

func TestParseFilesLimit(t *testing.T) {
	for text, want := range map[string]int{
		"Max open files            1024                 524288               files     \n":              1024,
		"Limit  Soft\nMax open files            unlimited            unlimited            files     \n": math.MaxInt,
	} {
		got, err := parseFilesLimit([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "Max open files", "Max open files x y files\n"} {
		_, err := parseFilesLimit([]byte(bad))
		require.ErrorIs(t, err, ErrMalformed)
	}
}

// The few counters that are read each time are those of a whole reading.
func TestSafepoints(t *testing.T) {
	for name, feature := range map[string]int{"jdk17.hsperfdata": 17, "jdk25.hsperfdata": 25} {
		data := capture(t, name)
		want, err := parseJVM(data)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "1")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		jvm := &JVMFile{file: f, size: len(data)}
		var got Safepoints
		for range 2 { // found, and read again
			require.NoError(t, jvm.Safepoints(&got))
			require.Equal(t, Safepoints{
				Begun: *want.Safepoints, Ran: *want.ApplicationTime, Stood: *want.SafepointTime,
				Collecting: want.Collecting, Started: *want.Started, Feature: feature,
			}, got, name)
		}
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = jvm.Safepoints(&got) }))

		x := jvm.safepoints
		number := make([]byte, 8)
		x.order.PutUint64(number, uint64(*want.Safepoints+1))
		_, err = f.WriteAt(number, int64(x.begun))
		require.NoError(t, err)
		x.order.PutUint64(number, math.MaxInt64)
		_, err = f.WriteAt(number, int64(x.pauses[0].entry))
		require.NoError(t, err)
		require.NoError(t, jvm.Safepoints(&got))
		require.Equal(t, *want.Safepoints+1, got.Begun)
		require.True(t, got.Collecting)

		require.NoError(t, f.Truncate(100))
		require.Error(t, jvm.Safepoints(&got))
		require.NoError(t, jvm.Close())
	}
}

func TestJavaFeature(t *testing.T) {
	for version, want := range map[string]int{"1.8.0_402": 8, "17.0.15": 17, "25": 25, "22-ea": 22, "": 0, "x": 0} {
		require.Equal(t, want, javaFeature(version), version)
	}
}

func TestThrottle(t *testing.T) {
	var th Throttle
	th.add([]byte("usage_usec 99\nnr_periods 3\nnr_throttled 2\nthrottled_usec 77\n"))
	th.add([]byte("nr_periods 5\nnr_throttled 1\nthrottled_time 1000\n"))
	th.setUsed([]byte("usage_usec 99\n"))
	require.Equal(t, Throttle{Periods: 5, Throttled: 3, Withheld: 78 * time.Microsecond, Used: 99 * time.Microsecond}, th)
	th.setUsed([]byte("123456789\n"))
	require.Equal(t, 123456789*time.Nanosecond, th.Used)
}

// Where the system call may not be read, the kernel's own word for where the
// thread waits stands in for it: both are asked for at each read.
func TestKeptThreadWithoutItsCalls(t *testing.T) {
	for wchan, accepting := range map[string]bool{"inet_csk_accept": true, "futex_do_wait": false, "0": false} {
		dir := fakeProc(t, map[string]string{
			"7/task/8/status":    "State:\tS (sleeping)\nvoluntary_ctxt_switches:\t5\n",
			"7/task/8/schedstat": "1 2 3\n",
			"7/task/8/wchan":     wchan,
			"7/task/8/syscall/x": "a folder cannot be read, whoever asks",
		})
		fs, err := NewFS(dir)
		require.NoError(t, err)
		kept, err := fs.KeepThread(7, 8)
		require.NoError(t, err)
		require.Error(t, kept.CallErr())
		var th Thread
		require.NoError(t, kept.Read(&th))
		require.Equal(t, Thread{State: 'S', Switches: 5, CPUTime: 1, RunDelay: 2, Ran: 3, Accepting: accepting}, th)
		kept.Close()
	}
}
