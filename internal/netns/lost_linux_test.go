package netns_test

import (
	"os"
	"strconv"
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
