package discovery

import (
	"os/exec"
	"syscall"

	"github.com/tcpdiag/tcpdiag/internal/sandbox"
)

// dieWithUs lets the kernel kill a child when the thread that starts it ends.
func dieWithUs(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

func childLimits() sandbox.Limits {
	return sandbox.Limits{Memory: childMemory, CPU: uint64(childCPU.Seconds()), Files: childFiles}
}
