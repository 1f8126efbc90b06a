package threaddump

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
)

// program compiles the test program once; the tests that need it are skipped where
// there is no JDK, which fails in CI.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tcpdiag-threaddump-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it, too
		return "", err
	}
	out, err := exec.CommandContext(context.Background(), "javac", "--release", "8", "-Xlint:-options", "-d", dir, "testdata/Waiting.java").CombinedOutput()
	if err != nil {
		_, _ = os.Stderr.Write(out)
	}
	return dir, err
})

func needJDK(t *testing.T) (classes string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: it starts JVMs")
	}
	if _, err := exec.LookPath("javac"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("this test needs a JDK, and CI=true forbids to skip it")
		}
		t.Skip("needs a JDK (javac)")
	}
	classes, err := program()
	require.NoError(t, err)
	return classes
}

// target is a JVM of a test.
type target struct {
	*exec.Cmd
	t      *testing.T
	proc   hostproc.FS
	out    *bufio.Reader
	stdin  io.Closer
	ended  chan struct{} // closed when it has ended
	result error
}

// begin starts a JVM and does not wait for it.
func begin(t *testing.T, attr *syscall.SysProcAttr, args ...string) *target {
	t.Helper()
	java, err := exec.LookPath(cmp.Or(os.Getenv("TCPDIAG_TEST_JAVA"), "java")) // of another version, to try it
	require.NoError(t, err)
	args = append([]string{"-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ErrorFile=/dev/null"}, args...)
	return run(t, exec.CommandContext(t.Context(), java, args...), attr)
}

func run(t *testing.T, cmd *exec.Cmd, attr *syscall.SysProcAttr) *target {
	t.Helper()
	proc := hostfs.Real(t)
	v := &target{Cmd: cmd, t: t, proc: proc, ended: make(chan struct{})}
	v.Dir = "/"
	v.SysProcAttr = attr
	r, w, err := os.Pipe()
	require.NoError(t, err)
	v.Stdout, v.Stderr = w, w
	v.stdin, err = v.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, v.Start())
	require.NoError(t, w.Close())
	v.out = bufio.NewReader(r)
	go func() {
		v.result = v.Wait()
		close(v.ended)
	}()
	t.Cleanup(func() {
		_ = v.Process.Kill()
		<-v.ended
		_ = r.Close()
	})
	return v
}

// start starts a JVM with as many threads as asked for, and waits until they are there.
func start(t *testing.T, threads string, options ...string) *target {
	t.Helper()
	return startAs(t, nil, threads, options...)
}

func startAs(t *testing.T, attr *syscall.SysProcAttr, threads string, options ...string) *target {
	t.Helper()
	classes := needJDK(t)
	v := begin(t, attr, append(options, "-cp", classes, "Waiting", threads, "5")...)
	v.up()
	return v
}

func (v *target) up() {
	v.t.Helper()
	for {
		line, err := v.out.ReadString('\n')
		require.NoError(v.t, err, "the JVM ended: %s", line)
		if strings.TrimSpace(line) == "up" {
			return
		}
	}
}

func (v *target) key() hostproc.ProcessKey {
	p, err := v.proc.Process(v.Process.Pid)
	require.NoError(v.t, err)
	return hostproc.ProcessKey{PID: p.PID, StartTime: p.StartTime}
}

// asker asks at once, and long: a test's machine may be busy.
func (v *target) asker() *Asker {
	return &Asker{proc: v.proc, patience: time.Minute, slots: newSlots()}
}

// refused is the reason for which the JVM was not asked.
func (v *target) refused(a *Asker) *Refusal {
	v.t.Helper()
	stacks, err := a.Ask(v.t.Context(), v.key())
	require.Nil(v.t, stacks)
	var r *Refusal
	require.ErrorAs(v.t, err, &r)
	return r
}

// lives reports that the JVM has not ended, and ends as it is asked to.
func (v *target) lives() {
	v.t.Helper()
	select {
	case <-v.ended:
		v.t.Fatalf("the JVM ended: %v", v.result)
	default:
	}
	require.NoError(v.t, v.stdin.Close())
	select {
	case <-v.ended:
	case <-time.After(time.Minute):
		v.t.Fatal("the JVM does not end")
	}
	require.NoError(v.t, v.result)
}

// The first request makes the JVM listen, the second uses that.
func TestAJVMIsAskedTwice(t *testing.T) {
	v := start(t, "20")
	for range 2 {
		stacks, err := v.asker().Ask(t.Context(), v.key())
		require.NoError(t, err)
		require.Equal(t, 22, stacks.Workers)
		require.False(t, stacks.Cut)
		require.Less(t, stacks.Took, time.Minute)
		busy := 0
		for _, g := range stacks.Groups {
			if !g.Busy() {
				continue
			}
			busy += g.Threads
			require.Equal(t, "Waiting.find", g.Application)
		}
		require.Equal(t, 20, busy)
		require.Equal(t, 19, stacks.BusyGroup().Threads, "one has the lock")
		require.Equal(t, "BLOCKED", stacks.BusyGroup().State)
		left, err := filepath.Glob("/tmp/.attach_pid" + strconv.Itoa(v.Process.Pid))
		require.NoError(t, err)
		require.Empty(t, left)
	}
	v.lives()
}
