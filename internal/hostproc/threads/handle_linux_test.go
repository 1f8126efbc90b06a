package threads

import (
	"math"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
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

func TestFindAcceptorInAccept(t *testing.T) {
	fs := hostfs.Real(t)
	tid, port, inode := proctest.Accepting(t)
	require.Eventually(t, func() bool {
		found, err := FindAcceptor(fs, os.Getpid(), port, inode, nil)
		return err == nil && found == tid
	}, time.Minute, time.Millisecond)
	_, err := FindAcceptor(fs, os.Getpid(), port, inode+1, nil)
	require.ErrorIs(t, err, ErrUnclear)
	_, err = FindAcceptor(fs, math.MaxInt32, port, inode, nil)
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}

func TestKeptThread(t *testing.T) {
	fs := hostfs.Real(t)
	tid, _, _ := proctest.Accepting(t)
	kept, err := OpenHandle(fs, os.Getpid(), tid)
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
	require.Equal(t, 3, proctest.Reads(t, func() { _ = kept.Read(&th) }), "schedstat, status, syscall")

	child := proctest.Start(t, "wait", "").PID()
	kept, err = OpenHandle(fs, child, child)
	require.NoError(t, err)
	defer kept.Close()
	require.NoError(t, syscall.Kill(child, syscall.SIGSTOP))
	require.Eventually(t, func() bool { return kept.Read(&th) == nil && th.Stopped() }, time.Minute, time.Millisecond)
	require.NoError(t, syscall.Kill(child, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		err := kept.Read(&th)
		return err == hostproc.ErrNoProcess || err == nil && th.State == 'Z' //nolint:errorlint // exactly
	}, time.Minute, time.Millisecond)
}

// Where the system call may not be read, the kernel's own word for where the
// thread waits stands in for it: both are asked for at each read.
func TestKeptThreadWithoutItsCalls(t *testing.T) {
	for wchan, accepting := range map[string]bool{"inet_csk_accept": true, "futex_do_wait": false, "0": false} {
		dir := proctest.Fake(t, map[string]string{
			"7/task/8/status":    "State:\tS (sleeping)\nvoluntary_ctxt_switches:\t5\n",
			"7/task/8/schedstat": "1 2 3\n",
			"7/task/8/wchan":     wchan,
			"7/task/8/syscall/x": "a folder cannot be read, whoever asks",
		})
		fs := hostfs.At(t, dir)
		kept, err := OpenHandle(fs, 7, 8)
		require.NoError(t, err)
		require.Error(t, kept.CallErr())
		var th Thread
		require.NoError(t, kept.Read(&th))
		require.Equal(t, Thread{State: 'S', Switches: 5, CPUTime: 1, RunDelay: 2, Ran: 3, Accepting: accepting}, th)
		kept.Close()
	}
}
