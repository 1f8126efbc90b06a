package discovery

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
)

// With the capabilities of the DaemonSet, which cannot read a stranger's auxiliary
// vector, the stranger's private files are still read with its own rights.
func TestPrivateFilesWithTheDaemonSetsCapabilities(t *testing.T) {
	private := stranger(t, func(dir string) []string { return tomcatArgs(dir) }, map[string]string{"conf/server.xml": smallServer})
	require.NoError(t, os.Chmod(fmt.Sprintf("/proc/%d/cwd/conf/server.xml", private.pid), 0o600))
	children := examine.StartedBy(time.Minute, func() *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", childArgument)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: 65534, Gid: 65534},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SETUID, unix.CAP_SETGID},
		}
		return cmd
	})
	c, _ := only(t, NewDiscoverer(hostfs.Real(t), WithExaminer(children)), private, 8080)
	require.NotNil(t, c.MaxThreads)
	require.Equal(t, 42, c.MaxThreads.Value)
}
