package observer

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// startNamed starts a process of that name, which has no JVM in it.
func startNamed(t *testing.T, name string) (pid int) {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	from, err := os.Open(sleep)
	require.NoError(t, err)
	defer func() { _ = from.Close() }()
	path := filepath.Join(t.TempDir(), name)
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
	require.NoError(t, err)
	_, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	cmd := exec.CommandContext(t.Context(), path, "300")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

func TestJVMWithoutCountersIsNotSearchedForAgain(t *testing.T) {
	proc, err := hostproc.NewFS("/proc")
	require.NoError(t, err)
	for name, jvm := range map[string]bool{"java": true, "jsvc": true, "jsvc.exec": true, "nginx": false} {
		t.Run(name, func(t *testing.T) {
			pid := startNamed(t, name)
			opens := nettest.Opens(t, fmt.Sprintf("/proc/%d/maps", pid))
			start := time.Now()
			var m processMemory
			at := func(later time.Duration) int {
				var miss missing
				m.readJVM(proc, start.Add(later), &model.Process{PID: pid, Comm: name}, "", &miss)
				if jvm {
					require.Equal(t, []model.Unavailable{noPerfData(pid)}, miss.list)
				} else {
					require.Empty(t, miss.list)
				}
				return opens()
			}
			if !jvm {
				require.Zero(t, at(0))
				return
			}
			require.Equal(t, 1, at(0))
			require.Zero(t, at(time.Second))
			require.Equal(t, 1, at(rarely), "it may have been starting")
			require.Zero(t, at(rarely+time.Second))
			require.Zero(t, at(time.Hour), "it never will")
		})
	}
}
