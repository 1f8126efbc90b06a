package discovery

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// TestJVM: the performance data of a JVM is opened in the child and read here, as root
// also that of another user.
func TestJVM(t *testing.T) {
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("needs java: ", err)
	}
	dir := proctest.PublicDir(t)
	source := filepath.Join(dir, "Sleeper.java")
	require.NoError(t, os.WriteFile(source, []byte(`public class Sleeper {
	public static void main(String[] args) throws Exception { while (true) { System.gc(); Thread.sleep(20); } }
}
`), 0o644))
	cmd := exec.CommandContext(t.Context(), java, "-Xmx32m", source)
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	proctest.Run(t, cmd)

	var key hostproc.ProcessKey
	require.Eventually(t, func() bool { // the name is that of the program once it runs
		p, err := hostfs.Real(t).Process(cmd.Process.Pid)
		key = hostproc.ProcessKey{PID: cmd.Process.Pid, StartTime: p.StartTime}
		return err == nil && model.IsJVM(p.Comm)
	}, time.Minute, time.Millisecond)
	clock := newClock(0)
	d := inChildren(t, WithClock(clock.now))
	_, err = d.JVM(key)
	require.ErrorIs(t, err, ErrUnexamined)
	var jvm *hsperf.File
	require.Eventually(t, func() bool { // it publishes some time after its start
		d.Discover(t.Context(), key.PID, key.StartTime, nil)
		jvm, err = d.JVM(key)
		clock.move(youngEvery)
		return err == nil
	}, time.Minute, 10*time.Millisecond, "%v", err)
	var first, later hsperf.Safepoints
	require.Eventually(t, func() bool { return jvm.Safepoints(&first) == nil }, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		return jvm.Safepoints(&later) == nil && later.Begun > first.Begun
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, jvm.Close())

	_, err = d.JVM(hostproc.ProcessKey{PID: key.PID, StartTime: key.StartTime + 1})
	require.ErrorIs(t, err, ErrUnexamined, "another process by now")
}
