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
