package netns_test

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

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
