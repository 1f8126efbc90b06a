package reader

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
)

// Of a server with worker processes those that are stopped are counted: its first process does not show it.
func TestStoppedChildren(t *testing.T) {
	proc := hostfs.Real(t)
	server := exec.CommandContext(t.Context(), "sh", "-c", "(while :; do read x; done) </dev/zero & (while :; do read x; done) </dev/zero & sleep 3600 & wait")
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
	})
	read := func() model.Process {
		p := model.Process{PID: server.Process.Pid, Comm: "sh"}
		readChildren(proc, &p)
		return p
	}
	require.Eventually(t, func() bool {
		pids, err := proc.Children(server.Process.Pid)
		return err == nil && len(pids) == 3 && read().Children == 2
	}, time.Minute, 10*time.Millisecond, "the workers, and a program that is another")
	require.Zero(t, read().StoppedChildren)
	pids, err := proc.Children(server.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pids[0], syscall.SIGSTOP))
	require.Eventually(t, func() bool { return read().StoppedChildren == 1 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, pids[0], read().StoppedChild)
	jvm := model.Process{PID: server.Process.Pid, Comm: "java"}
	readChildren(proc, &jvm)
	require.Zero(t, jvm.Children, "a JVM's children are other programs")
}

// Of many workers the first are read, and all while each is stopped: of the others it is said that they are there.
func TestManyChildren(t *testing.T) {
	const workers = mostChildren + 6
	proc := hostfs.Real(t)
	server := exec.CommandContext(t.Context(), "sh", "-c", "exec 3<&0; i=0; while [ $i -lt 70 ]; do (read x <&3; :) & i=$((i+1)); done; wait")
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	in, err := server.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = in.Close()
		_ = server.Wait()
	})
	read := func() model.Process {
		p := model.Process{PID: server.Process.Pid, Comm: "sh"}
		readChildren(proc, &p)
		return p
	}
	var pids []int
	require.Eventually(t, func() bool {
		pids, err = proc.Children(server.Process.Pid)
		return err == nil && len(pids) == workers && read().Children == mostChildren
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, workers-mostChildren, read().ChildrenUnread)
	stop := func(some []int) {
		for _, pid := range some {
			require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		}
	}
	stop(pids[:mostChildren])
	require.Eventually(t, func() bool { return read().StoppedChildren == mostChildren }, time.Minute, 10*time.Millisecond)
	p := read()
	require.Equal(t, mostChildren+1, p.Children, "the next one runs")
	require.Equal(t, workers-mostChildren-1, p.ChildrenUnread)
	stop(pids[mostChildren:])
	require.Eventually(t, func() bool { return read().StoppedChildren == workers }, time.Minute, 10*time.Millisecond)
	require.Zero(t, read().ChildrenUnread)
}
