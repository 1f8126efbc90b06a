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

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// A process that ends while its files are read may be another one by then: what was
// read is given up, whatever has its number now.
func TestProcessThatEndsWhileItIsRead(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = tomcatArgs(base(t, smallServer))
	cmd.Env = []string{fakeVariable + "={}"}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	_, err = out.Read(make([]byte, 1)) // it is what it looks like
	require.NoError(t, err)
	p, err := procFS(t).Process(cmd.Process.Pid)
	require.NoError(t, err)

	s, err := newSubject(procFS(t), Request{PID: p.PID, StartTime: p.StartTime})
	require.NoError(t, err)
	defer s.handles.Close()
	e, err := s.examine()
	require.NoError(t, err)
	require.NotEmpty(t, e.found.connectors)

	ending, err := newSubject(procFS(t), Request{PID: p.PID, StartTime: p.StartTime})
	require.NoError(t, err)
	defer ending.handles.Close()
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	_, err = ending.examine()
	require.ErrorIs(t, err, hostproc.ErrGone)
}

// A pid with another start time is another process: nothing of it is opened.
func TestAnotherProcessWithThePID(t *testing.T) {
	p, err := procFS(t).Process(os.Getpid())
	require.NoError(t, err)
	_, err = newSubject(procFS(t), Request{PID: p.PID, StartTime: p.StartTime - 1})
	require.ErrorIs(t, err, hostproc.ErrGone)
}

// With the capabilities of the DaemonSet, which cannot read a stranger's auxiliary
// vector, the stranger's private files are still read with its own rights.
func TestPrivateFilesWithTheDaemonSetsCapabilities(t *testing.T) {
	private := stranger(t, func(dir string) []string { return tomcatArgs(dir) }, map[string]string{"conf/server.xml": smallServer})
	require.NoError(t, os.Chmod(fmt.Sprintf("/proc/%d/cwd/conf/server.xml", private.pid), 0o600))
	children := &Children{deadline: time.Minute, command: func() *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", childArgument)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: 65534, Gid: 65534},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SETUID, unix.CAP_SETGID},
		}
		return cmd
	}}
	c, _ := only(t, NewDiscoverer(procFS(t), WithExaminer(children)), private, 8080)
	require.NotNil(t, c.MaxThreads)
	require.Equal(t, 42, c.MaxThreads.Value)
}
