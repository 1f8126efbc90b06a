package reader

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A thread of a frozen process stays in the state it was in: only its cgroup says that
// nothing runs.
func TestFrozen(t *testing.T) {
	nettest.Root(t)
	const hierarchy = "/sys/fs/cgroup/freezer"
	if _, err := os.Stat(hierarchy); err != nil {
		t.Skip("no freezer of version 1: ", err)
	}
	dir, err := os.MkdirTemp(hierarchy, "tcpdiag-test-")
	if err != nil {
		t.Skip("no cgroup can be made: ", err)
	}
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.Remove(dir) == nil }, time.Minute, 10*time.Millisecond)
	})
	sleeps := exec.CommandContext(t.Context(), "sleep", "3600")
	sleeps.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, sleeps.Start())
	set := func(file, value string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600))
	}
	t.Cleanup(func() {
		set("freezer.state", "THAWED")
		_ = sleeps.Process.Kill()
		_ = sleeps.Wait()
	})
	set("cgroup.procs", fmt.Sprint(sleeps.Process.Pid))

	c := &clock{at: time.Unix(1_700_000_000, 0)}
	r := Open(hostfs.Real(t), jvmOf(t, sleeps.Process.Pid), Listener{PID: sleeps.Process.Pid, Port: 1, Inode: 1}, c.now)
	t.Cleanup(r.Close)
	require.False(t, r.Read().Stopped.V)
	set("freezer.state", "FROZEN")
	require.True(t, r.Read().Stopped.V)
	set("freezer.state", "THAWED")
	require.False(t, r.Read().Stopped.V)
}
