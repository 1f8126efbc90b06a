package discovery

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// TestJVM: the performance data of a JVM is opened in the child and read here, as root
// also that of another user.
func TestJVM(t *testing.T) {
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("needs java: ", err)
	}
	dir, err := os.MkdirTemp("", "sleeper")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
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
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })

	var key hostproc.ProcessKey
	require.Eventually(t, func() bool { // the name is that of the program once it runs
		p, err := procFS(t).Process(cmd.Process.Pid)
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

// What comes through the socket may be anything: the child has read a stranger's bytes.
func TestWhatAChildHandsOver(t *testing.T) {
	open := func() int {
		f, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		fd, err := unix.Dup(int(f.Fd()))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return fd
	}
	for name, c := range map[string]struct {
		message string
		files   int
		want    error // nil: a file, or nothing at all
	}{
		"a file":                        {message: "f", files: 1},
		"two files":                     {message: "f", files: 2},
		"many files and words":          {message: "f and more", files: 200},
		"nothing":                       {},
		"no file where one should be":   {message: "f", want: errPerfData},
		"none, and a file all the same": {message: "n", files: 1, want: hsperf.ErrNoPerfData},
		"denied":                        {message: "d", want: fs.ErrPermission},
		"failed":                        {message: "x", want: errPerfData},
		"a byte that means nothing":     {message: "\x00", files: 1, want: errPerfData},
	} {
		t.Run(name, func(t *testing.T) {
			var cmd exec.Cmd
			ours, err := passage(&cmd)
			require.NoError(t, err)
			before := openFiles(t)
			var fds []int
			for range c.files {
				fds = append(fds, open())
			}
			if c.message != "" {
				require.NoError(t, unix.Sendmsg(int(cmd.ExtraFiles[0].Fd()), []byte(c.message), unix.UnixRights(fds...), nil, 0))
			}
			for _, fd := range fds {
				require.NoError(t, unix.Close(fd))
			}
			got := received(ours)
			switch {
			case c.message == "":
				require.Equal(t, PerfData{}, got)
			case c.want == nil:
				require.NoError(t, got.Err)
				require.NoError(t, got.File.Close())
			default:
				require.ErrorIs(t, got.Err, c.want)
				require.Nil(t, got.File)
			}
			require.LessOrEqual(t, openFiles(t), before, "what was not asked for is closed")
			closeAll([]*os.File{ours, cmd.ExtraFiles[0]})
		})
	}
}
