package hostproc

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/memory"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func TestNewFSRefusesOtherFolders(t *testing.T) {
	_, err := NewFS(t.TempDir())
	require.ErrorContains(t, err, "is not a proc file system")
	_, err = NewFS("/nonexistent")
	require.ErrorContains(t, err, `"/nonexistent" is not a proc file system`)
}

func TestProcess(t *testing.T) {
	fs := realProc(t)
	began := time.Now()
	c := proctest.Start(t, "threads", "http-nio-1-e,b")
	p, err := fs.Process(c.PID())
	require.NoError(t, err)
	require.Equal(t, c.PID(), p.PID)
	require.Equal(t, "exe", p.Comm, "started as /proc/self/exe")
	require.GreaterOrEqual(t, p.Threads, 3)
	require.Greater(t, p.Used, uint64(1<<20), "a Go program's heap and stacks")
	require.Equal(t, uint32(os.Getuid()), p.UIDs[0])
	require.Equal(t, uint32(os.Getgid()), p.GIDs[3])
	require.Equal(t, c.PID(), p.InnerPID())
	require.False(t, p.Stopped())

	before := time.Now()
	uptime, err := fs.Uptime()
	require.NoError(t, err)
	after := time.Now()
	require.Less(t, p.Age(uptime), before.Sub(began)+after.Sub(before)+time.Second, "it was started just now")
	boot, err := fs.BootTime()
	require.NoError(t, err)
	require.WithinRange(t, boot.Add(uptime), before.Add(-2*time.Second), after.Add(2*time.Second))
}

func TestProcessOfAnotherUser(t *testing.T) {
	proctest.NeedRoot(t)
	c := proctest.Start(t, "wait", "", proctest.AsNobody)
	p, err := realProc(t).Process(c.PID())
	require.NoError(t, err)
	require.Equal(t, [4]uint32{proctest.Nobody, proctest.Nobody, proctest.Nobody, proctest.Nobody}, p.UIDs)
	require.Equal(t, [4]uint32{proctest.Nobody, proctest.Nobody, proctest.Nobody, proctest.Nobody}, p.GIDs)
}

func TestProcessStopped(t *testing.T) {
	fs := realProc(t)
	c := proctest.Start(t, "wait", "")
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		p, err := fs.Process(c.PID())
		return err == nil && p.State == 'T' && p.Stopped()
	}, time.Minute, time.Millisecond)
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool {
		p, err := fs.Process(c.PID())
		return err == nil && !p.Stopped()
	}, time.Minute, time.Millisecond)
}

// A process that has crashed keeps its sockets until its core dump is written.
func TestProcessDumping(t *testing.T) {
	of := func(flags, status string) Process {
		fs, err := NewFS(proctest.Fake(t, map[string]string{
			"7/stat":   "7 (java) D 1 1 1 0 -1 " + flags + " 0 0 0 0 0 0 0 0 20 0 1 0 42 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
			"7/status": status,
		}))
		require.NoError(t, err)
		p, err := fs.Process(7)
		require.NoError(t, err)
		return p
	}
	const signaled, alive = "4195400", "4194304" // as Linux 6.18 shows them
	require.True(t, of(signaled, "Name:\tjava\nCoreDumping:\t1\nTHP_enabled:\t1\n").Dumping)
	require.False(t, of(signaled, "Name:\tjava\nCoreDumping:\t0\n").Dumping, "killed, and not gone yet")
	require.False(t, of(signaled, "Name:\tjava\n").Dumping, "Linux before 4.15 does not say it")
	require.False(t, of(alive, "Name:\tjava\nCoreDumping:\t0\n").Dumping)
}

func TestInnerPID(t *testing.T) {
	proctest.NeedRoot(t)
	c := proctest.Start(t, "wait", "", func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	})
	p, err := realProc(t).Process(c.PID())
	require.NoError(t, err)
	require.Equal(t, []int{c.PID(), 1}, p.NSpid)
	require.Equal(t, 1, p.InnerPID())
	require.Equal(t, 7, Process{PID: 7}.InnerPID(), "kernels before 4.1 tell only this")
}

// A server in a time namespace that booted a day earlier, or is to boot in a day, is as old as it is: the kernel says its
// start in the reader's time.
func TestServerInATimeNamespace(t *testing.T) {
	proctest.NeedRoot(t)
	fs := realProc(t)
	for _, offset := range []string{"86400", "-1"} {
		began := time.Now()
		cmd := exec.CommandContext(t.Context(), "unshare", "--time", "--boottime", offset, "--monotonic", offset, "--fork", "sh", "-c", "echo $$; read x")
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		var said strings.Builder
		cmd.Stderr = &said
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
		line := make([]byte, 16)
		n, err := out.Read(line)
		if err != nil {
			t.Skipf("no time namespaces: %s", said.String())
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
		require.NoError(t, err)
		p, err := fs.Process(pid)
		require.NoError(t, err)
		require.Equal(t, "sh", p.Comm)
		uptime, err := fs.Uptime()
		require.NoError(t, err)
		require.GreaterOrEqual(t, p.Age(uptime), time.Duration(0))
		require.Less(t, p.Age(uptime), time.Since(began)+time.Second, offset)
	}
}

func TestZombieIsGone(t *testing.T) {
	fs := realProc(t)
	c := proctest.Start(t, "wait", "")
	require.NoError(t, c.Process.Kill())
	require.Eventually(t, func() bool {
		p, err := fs.Process(c.PID())
		return err == nil && p.Exited()
	}, time.Minute, time.Millisecond)
	require.ErrorIs(t, fs.SocketInodes(c.PID(), func(uint32) {}), ErrNoProcess)
	args, err := fs.Cmdline("", c.PID())
	require.NoError(t, err)
	require.Empty(t, args)
}

// TestThreadsAreBounded: a process of which not all threads are read is not taken for one that has no more.
func TestThreadsAreBounded(t *testing.T) {
	c := proctest.Start(t, "threads", "a,b,c,d")
	seen := 0
	read := func(int, []byte) error { seen++; return nil }
	require.NoError(t, realProc(t).eachTaskOf(c.PID(), 1000, "/comm", read))
	require.Greater(t, seen, 4)
	seen = 0
	require.ErrorIs(t, realProc(t).eachTaskOf(c.PID(), 3, "/comm", read), ErrManyThreads)
	require.Equal(t, 3, seen)
}

func TestDiesMeanwhile(t *testing.T) {
	fs := realProc(t)
	t.Run("threads", func(t *testing.T) {
		c := proctest.Start(t, "threads", "a,b,c,d")
		seen := 0
		err := fs.ThreadNames(c.PID(), func(int, string) {
			if seen++; seen == 1 {
				c.Stop()
			}
		})
		require.ErrorIs(t, err, ErrNoProcess)
		require.Equal(t, 1, seen)
	})
	t.Run("sockets", func(t *testing.T) {
		c := proctest.Start(t, "sockets", "20")
		seen := 0
		err := fs.SocketInodes(c.PID(), func(uint32) {
			if seen++; seen == 1 {
				c.Stop()
			}
		})
		require.ErrorIs(t, err, ErrNoProcess)
		require.Equal(t, 1, seen)
	})
}

func TestCmdlineAndEnviron(t *testing.T) {
	fs := realProc(t)
	c := proctest.Start(t, "wait", "", func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, "--server.port=8080", "", "a b")
		cmd.Env = append(cmd.Env, "EMPTY=", "SERVER_PORT=9090", "WITH=a=b\nc")
	})
	args, err := fs.Cmdline("", c.PID())
	require.NoError(t, err)
	require.Equal(t, []string{"/proc/self/exe", "--server.port=8080", "", "a b"}, args)
	_, err = fs.WithMemory(nil).Cmdline("", c.PID())
	require.ErrorIs(t, err, ErrNotSupported, "nobody reads the memory of others")
	p, err := fs.Process(c.PID())
	require.NoError(t, err)
	h, err := fs.Handles(c.PID(), p.StartTime)
	require.NoError(t, err)
	defer h.Close()
	env, err := h.Environ()
	require.NoError(t, err)
	require.Equal(t, []string{"EMPTY=", "SERVER_PORT=9090", "WITH=a=b\nc"}, env[len(env)-3:])
}

func TestCwdAndRoot(t *testing.T) {
	fs := realProc(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/application.yml", []byte("x"), 0o600))
	c := proctest.Start(t, "wait", "", func(cmd *exec.Cmd) { cmd.Dir = dir })
	data, err := os.ReadFile(fs.Path(c.PID(), "cwd", "application.yml"))
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
	data, err = os.ReadFile(fs.Path(c.PID(), "root") + dir + "/application.yml")
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
}

func TestSysinfo(t *testing.T) {
	fs := realProc(t)
	want, err := os.Hostname()
	require.NoError(t, err)
	host, err := fs.Hostname()
	require.NoError(t, err)
	require.Equal(t, want, host)
	release, err := fs.KernelRelease()
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "uname", "-r").Output()
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(out)), release)
}

func realProc(t *testing.T) FS {
	t.Helper()
	fs, err := NewFS("/proc")
	require.NoError(t, err)
	return fs.WithMemory(memory.Here{})
}

func TestNetID(t *testing.T) {
	fs := realProc(t)
	own, err := fs.NetID(os.Getpid())
	require.NoError(t, err)
	c := proctest.Start(t, "wait", "")
	same, err := fs.NetID(c.PID())
	require.NoError(t, err)
	require.Equal(t, own, same)
	here, err := fs.NetID(CallingThread)
	require.NoError(t, err)
	require.Equal(t, own, here)
	other, err := fs.NetID(proctest.MoveToNetNS(t))
	require.NoError(t, err)
	require.NotEqual(t, own, other)
	here, err = fs.NetID(CallingThread)
	require.NoError(t, err)
	require.Equal(t, other, here)
}

// fakeRoot is a proc in which process 7 has dir for its root.
func fakeRoot(t *testing.T, dir string) FS {
	t.Helper()
	fs, err := NewFS(proctest.FakeRoot(t, dir))
	require.NoError(t, err)
	return fs
}

func TestThreadNames(t *testing.T) {
	fs := realProc(t)
	c := proctest.Start(t, "threads", "http-nio-8080-exec-1,http-nio-8080-exec-2,odd name) (")
	var names []string
	var tids []int
	require.NoError(t, fs.ThreadNames(c.PID(), func(tid int, comm string) {
		tids = append(tids, tid)
		names = append(names, comm)
	}))
	require.Equal(t, c.PID(), tids[0], "the main thread comes first")
	slices.Sort(tids) // the kernel lists them by age, and numbers start again at pid_max
	require.Len(t, slices.Compact(tids), len(names), "each once")
	require.Contains(t, names, "odd name) (")
	require.Equal(t, 2, len(names)-len(slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "http-nio-8080-e" })))
}

func TestCountsDescriptors(t *testing.T) {
	empty := t.TempDir() + "/fd"
	require.NoError(t, os.WriteFile(empty, nil, 0o600)) // of size 0, as fd is before 6.2
	require.False(t, countsDescriptors(empty))
	require.False(t, countsDescriptors(t.TempDir()+"/nothing"))
	require.Equal(t, kernelAtLeast(t, 6, 2), countsDescriptors("/proc/self/fd"))
}

func kernelAtLeast(t *testing.T, major, minor int) bool {
	t.Helper()
	release, err := realProc(t).KernelRelease()
	require.NoError(t, err)
	parts := strings.SplitN(release, ".", 3)
	require.GreaterOrEqual(t, len(parts), 2, release)
	a, err := strconv.Atoi(parts[0])
	require.NoError(t, err)
	b, err := strconv.Atoi(parts[1])
	require.NoError(t, err)
	return a > major || a == major && b >= minor
}
