package watchlist

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A process that is stopped serves nobody, nor does one that has ended.
func TestWhoRuns(t *testing.T) {
	proc := hostfs.Real(t)
	sleep := nettest.Namespace(t).Command("sleep", "600")
	require.NoError(t, sleep.Start())
	t.Cleanup(func() { _ = sleep.Process.Kill(); _ = sleep.Wait() })
	pid := sleep.Process.Pid
	require.True(t, runs(proc, pid))
	require.NoError(t, sleep.Process.Signal(unix.SIGSTOP))
	require.Eventually(t, func() bool { return !runs(proc, pid) }, time.Minute, time.Millisecond)
	require.NoError(t, sleep.Process.Kill())
	require.Eventually(t, func() bool {
		p, err := proc.Process(pid)
		return err != nil || p.Exited()
	}, time.Minute, time.Millisecond)
	require.False(t, runs(proc, pid), "it has not been waited for")
}

// Between two searches the process may have ended, and its number may be another's.
func TestDrainingServerThatEnded(t *testing.T) {
	proc := hostfs.Real(t)
	target := model.Target{Port: 8080, NetNS: 1}
	own, err := proc.Stat(unix.Getpid())
	require.NoError(t, err)
	for start, there := range map[uint64]bool{own.StartTime: true, own.StartTime + 1: false} {
		d := draining{at: time.Unix(1, 0), found: []drainingServer{{target: target, start: start, connected: model.OtherProcess{PID: unix.Getpid(), Connections: 3}}}}
		got := []model.Target{target}
		d.say(proc, got)
		require.Equal(t, there, got[0].Draining != nil)
	}
	got := []model.Target{{Port: 8080, NetNS: 1, Up: true}, {Port: 8080, NetNS: 2}}
	(&draining{found: []drainingServer{{target: target, start: own.StartTime, connected: model.OtherProcess{PID: unix.Getpid()}}}}).say(proc, got)
	require.Nil(t, got[0].Draining, "it listens again")
	require.Nil(t, got[1].Draining, "in another namespace")
}
