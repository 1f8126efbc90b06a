package reader

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// TestLongStarvedOfCPU: while another program takes all of its CPU, the acceptor
// that a connection woke does not get to run.
func TestLongStarvedOfCPU(t *testing.T) {
	needServers(t)
	javas := javas(t)
	s := start(t, javas[len(javas)-1], "10.1.59", nil)
	r := s.open(t, plain)
	s.settles(t, plain, r, model.CauseSlowAccept, evidence.StrengthAcceptor)

	hog := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	require.NoError(t, hog.Start())
	defer func() {
		_ = hog.Process.Kill()
		_ = hog.Wait()
	}()
	var one unix.CPUSet
	one.Set(0)
	require.NoError(t, unix.SchedSetaffinity(hog.Process.Pid, &one))
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(s.pid) + "/task/*")
	require.NoError(t, err)
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		require.NoError(t, err)
		_ = unix.SchedSetaffinity(tid, &one) // it may have ended
		_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
	}
	stop := s.visits(t, plain)
	defer stop()
	s.settles(t, plain, r, model.CauseCPUSaturated, evidence.StrengthProcess)
}
