package netns_test

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// TestLostThreadDies takes the way back away: the thread must not be used for
// other goroutines.
func TestLostThreadDies(t *testing.T) {
	ns := nettest.Namespace(t)
	target, err := os.Open(ns.Path())
	require.NoError(t, err)
	defer target.Close()
	noHome, err := os.Open("/dev/null")
	require.NoError(t, err)
	defer noHome.Close()

	var thread int
	err = netns.DoNoReturn(target, noHome, func() error { thread = unix.Gettid(); return nil })
	require.ErrorIs(t, err, unix.EINVAL)
	require.ErrorContains(t, err, "given up")
	require.Eventually(t, func() bool {
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(thread))
		return os.IsNotExist(err)
	}, waitFor, tick)
}

// TestFirstThreadStays: with the first thread as good as any other, a visit
// sooner or later would be seen from outside.
func TestFirstThreadStays(t *testing.T) {
	ns := nettest.Namespace(t)
	for range 300 {
		require.NoError(t, netns.Do(ns.Path(), func() error {
			require.NotEqual(t, os.Getpid(), unix.Gettid())
			return nil
		}))
	}
}

// A process that is to die with its parent (PR_SET_PDEATHSIG) dies with the thread
// that started it: New must not end one. Before it went back 20 to 24 of 50 died.
func TestNewEndsNoThread(t *testing.T) {
	nettest.Root(t)
	for range 30 {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		started, ended := make(chan error), make(chan error)
		go func() { started <- cmd.Start() }() // on a thread that is free again afterwards
		require.NoError(t, <-started)
		go func() { ended <- cmd.Wait() }()
		file, err := netns.New()
		require.NoError(t, err)
		require.NoError(t, file.Close())
		require.NoError(t, syscall.Kill(cmd.Process.Pid, syscall.SIGTERM)) // SIGKILL came before, if at all
		var exit *exec.ExitError
		require.ErrorAs(t, <-ended, &exit)
		require.Equal(t, syscall.SIGTERM, exit.Sys().(syscall.WaitStatus).Signal())
	}
}
