package hostproc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	childMode = "HOSTPROC_TEST_CHILD"
	childArg  = "HOSTPROC_TEST_ARG"
	nobody    = 65534
)

// TestMain doubles as the processes that the tests read.
func TestMain(m *testing.M) {
	// Keeps the main thread to this goroutine: its name is the process's, and
	// tests that move into another namespace end their threads.
	runtime.LockOSThread()
	mode := os.Getenv(childMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := runChild(mode, os.Getenv(childArg)); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

func runChild(mode, arg string) error {
	var err error
	switch mode {
	case "wait":
	case "sockets":
		err = childSockets(arg)
	case "threads":
		err = childThreads(arg)
	case "chroot":
		err = unix.Chroot(arg)
	case "probe":
		return childProbe("/proc", arg)
	case "beside":
		return childBeside(arg)
	case "hidepid":
		return childHidePID(arg)
	default:
		err = fmt.Errorf("no mode %q", mode)
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes it
	return nil
}

// childSockets opens as many sockets and prints their inodes.
func childSockets(arg string) error {
	n, err := strconv.Atoi(arg)
	if err != nil {
		return err
	}
	for range n {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		fmt.Println(st.Ino)
	}
	return nil
}

// childThreads starts threads with the names given, separated by commas.
func childThreads(names string) error {
	named := make(chan error)
	for name := range strings.SplitSeq(names, ",") {
		go func() {
			runtime.LockOSThread()
			comm := fmt.Sprintf("/proc/self/task/%d/comm", unix.Gettid())
			named <- os.WriteFile(comm, []byte(name), 0)
			select {}
		}()
		if err := <-named; err != nil {
			return err
		}
	}
	return nil
}

// probeResult is what a reader finds out about a process, by kind of error.
type probeResult map[string]string

func childProbe(mount, arg string) error {
	pid, err := strconv.Atoi(arg)
	if err != nil {
		return err
	}
	fs, err := NewFS(mount)
	if err != nil {
		return err
	}
	_, processErr := fs.Process(pid)
	_, filesErr := fs.OpenFiles(pid)
	counting := fs
	counting.fdCount = false
	_, countErr := counting.OpenFiles(pid)
	_, limitErr := fs.OpenFilesLimit(pid)
	_, cmdErr := fs.Cmdline(pid)
	_, envErr := fs.Environ(pid)
	_, countersErr := fs.NetCounters(pid)
	_, sockstatErr := fs.Sockstat(pid)
	_, delayErr := fs.RunDelay(pid)
	_, cgroupErr := fs.Cgroup(pid)
	_, jvmErr := fs.JVM(pid)
	_, openErr := fs.OpenRegular(pid, "/etc/hostname")
	listen, listenErr := fs.OpenListenCounters(pid)
	if listenErr == nil {
		_ = listen.Close()
	}
	_, netErr := fs.NetID(pid)
	_, sampleErr := fs.SampleSocketInodes(pid, 1, func(uint32) {})
	return json.NewEncoder(os.Stdout).Encode(probeResult{
		"process": kind(processErr), "files": kind(filesErr), "count": kind(countErr), "limit": kind(limitErr),
		"cmdline": kind(cmdErr), "environ": kind(envErr), "counters": kind(countersErr), "sockstat": kind(sockstatErr),
		"delay": kind(delayErr), "cgroup": kind(cgroupErr), "jvm": kind(jvmErr), "open": kind(openErr),
		"listen": kind(listenErr), "net": kind(netErr),
		"threads": kind(fs.ThreadNames(pid, func(int, string) {})),
		"sockets": kind(fs.SocketInodes(pid, func(uint32) {})), "sample": kind(sampleErr),
	})
}

func kind(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrGone):
		return "gone"
	case errors.Is(err, ErrInvisible):
		return "invisible"
	case errors.Is(err, iofs.ErrPermission):
		return "permission"
	case errors.Is(err, ErrNoPerfData):
		return "noperfdata"
	}
	return err.Error()
}

// childHidePID mounts a proc with hidepid=2, in a mount namespace that is
// its own, and looks through it as nobody.
func childHidePID(arg string) error {
	dir, pid, _ := strings.Cut(arg, ":")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("proc", dir, "proc", 0, "hidepid=2"); err != nil {
		return err
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(nobody, nobody, nobody), syscall.Setresuid(nobody, nobody, nobody)); err != nil {
		return err
	}
	return childProbe(dir, pid)
}

// childBeside joins a cgroup, makes it the root of its cgroup namespace and has
// nothing but that mounted; then it reads a process in another.
func childBeside(arg string) error {
	pid, err := strconv.Atoi(arg)
	if err != nil {
		return err
	}
	group := os.Getenv("HOSTPROC_TEST_CGROUP")
	if err := os.WriteFile(group+"/cgroup.procs", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	parent := group[:strings.LastIndex(group, "/")]
	defer func() { _ = os.WriteFile(parent+"/cgroup.procs", []byte(strconv.Itoa(os.Getpid())), 0o600) }()
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil { // of the main thread, whose /proc/self is
		return err
	}
	fs, err := NewFS("/proc")
	if err != nil {
		return err
	}
	fs.cgroups = nil // as in a container, where only its own group is mounted
	c, err := fs.Cgroup(pid)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"path": c.Path, "limit": c.CPULimit})
}

// child is a process under test.
type child struct {
	*exec.Cmd
	lines []string // printed before "ready"
	stdin io.Closer
}

func (c *child) pid() int { return c.Process.Pid }

// stop ends the child and collects it.
func (c *child) stop() {
	_ = c.stdin.Close()
	_ = c.Process.Kill()
	_ = c.Wait()
}

func asNobody(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

func childCommand(t *testing.T, mode, arg string, options ...func(*exec.Cmd)) *exec.Cmd {
	t.Helper()
	// By this name another user may start it whatever folder it is in.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childMode+"="+mode, childArg+"="+arg)
	cmd.Stderr = os.Stderr
	for _, option := range options {
		option(cmd)
	}
	return cmd
}

func startChild(t *testing.T, mode, arg string, options ...func(*exec.Cmd)) *child {
	t.Helper()
	cmd := childCommand(t, mode, arg, options...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{Cmd: cmd, stdin: stdin}
	t.Cleanup(c.stop)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if lines.Text() == "ready" {
			return c
		}
		c.lines = append(c.lines, lines.Text())
	}
	t.Fatalf("child %q ended before it was ready", mode)
	return nil
}

func probe(t *testing.T, mode, arg string, options ...func(*exec.Cmd)) probeResult {
	t.Helper()
	out, err := childCommand(t, mode, arg, options...).Output()
	require.NoError(t, err)
	var r probeResult
	require.NoError(t, json.Unmarshal(out, &r))
	return r
}

func realProc(t *testing.T) FS {
	t.Helper()
	fs, err := NewFS("/proc")
	require.NoError(t, err)
	return fs
}

// needRoot skips, but only where nobody relies on the test.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("needs root, and in CI it is a failure not to have it")
	}
	t.Skip("needs root: it starts processes of other users and namespaces")
}

// needJava finds a JVM; without one the test is skipped, in CI it fails.
func needJava(t *testing.T) string {
	t.Helper()
	java, err := exec.LookPath("java")
	if err == nil {
		return java
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("needs java, and in CI it is a failure not to have it")
	}
	t.Skip("needs java: ", err)
	return ""
}

// moveToNetNS moves the test's thread into a network namespace of its own, with
// lo up. The thread ends with the test. It returns the thread's id:
// /proc/TID/net is its namespace's.
func moveToNetNS(t *testing.T) int {
	t.Helper()
	needRoot(t)
	runtime.LockOSThread()
	require.NotEqual(t, unix.Getpid(), unix.Gettid(), "the main thread must stay")
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
	require.NoError(t, loopbackUp())
	return unix.Gettid()
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
