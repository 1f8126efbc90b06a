package proctest

import (
	"bufio"
	"fmt"
	"io"
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
)

// Nobody is another user, and a group.
const Nobody = 65534

// Main runs a package's tests, or stands in for one of the processes that they read:
// modes are what such a process does by itself, by name.
func Main(m *testing.M, modes map[string]func(arg string) error) {
	// Keeps the main thread to this goroutine: its name is the process's, and
	// tests that move into another namespace end their threads.
	runtime.LockOSThread()
	mode := os.Getenv(childMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	run := modes[mode]
	if run == nil {
		run = func(arg string) error { return runChild(mode, arg) }
	}
	if err := run(os.Getenv(childArg)); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// runChild does what children of several packages do, and waits.
func runChild(mode, arg string) error {
	var err error
	switch mode {
	case "wait":
	case "sockets":
		err = childSockets(arg)
	case "threads":
		err = StartThreads(strings.Split(arg, ",")...)
	case "chroot":
		err = unix.Chroot(arg)
	case "mapped":
		var at uintptr
		if at, err = PlayMapped(arg, "http-nio-8080-exec-1"); err == nil {
			fmt.Println(at)
		}
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

// StartThreads starts threads with the names given, which stay.
func StartThreads(names ...string) error {
	named := make(chan error)
	for _, name := range names {
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

// Child is a process under test.
type Child struct {
	*exec.Cmd
	Lines []string // printed before "ready"
	stdin io.WriteCloser
	out   *bufio.Scanner
}

// PID is its id.
func (c *Child) PID() int { return c.Process.Pid }

// Stop ends the child and collects it.
func (c *Child) Stop() {
	_ = c.stdin.Close()
	_ = c.Process.Kill()
	_ = c.Wait()
}

// Do has a child that reads commands obey one, and waits for its answer.
func (c *Child) Do(t *testing.T, command string) {
	t.Helper()
	_, err := fmt.Fprintln(c.stdin, command)
	require.NoError(t, err)
	require.True(t, c.out.Scan())
}

// AsNobody starts it as another user.
func AsNobody(cmd *exec.Cmd) { AsUser(Nobody)(cmd) }

// AsUser starts it as a user and the group of the same number.
func AsUser(id uint32) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	}
}

// Command is a process of a mode that is not started yet.
func Command(t *testing.T, mode, arg string, options ...func(*exec.Cmd)) *exec.Cmd {
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

// Start starts one, and waits until it is ready.
func Start(t *testing.T, mode, arg string, options ...func(*exec.Cmd)) *Child {
	t.Helper()
	cmd := Command(t, mode, arg, options...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &Child{Cmd: cmd, stdin: stdin, out: bufio.NewScanner(stdout)}
	t.Cleanup(c.Stop)
	for c.out.Scan() {
		if c.out.Text() == "ready" {
			return c
		}
		c.Lines = append(c.Lines, c.out.Text())
	}
	t.Fatalf("child %q ended before it was ready", mode)
	return nil
}

// Run starts a program, which ends with the test.
func Run(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// Accepting is a thread of ours in accept(2), and its listener's port and inode.
func Accepting(t testing.TB) (tid int, port uint16, inode uint32) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(fd, 1))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &st))
	started, ended := make(chan int), make(chan struct{})
	go func() {
		runtime.LockOSThread() // or it may be another thread that accepts
		started <- unix.Gettid()
		_, _, _ = unix.Accept(fd)
		close(ended)
	}()
	tid = <-started
	t.Cleanup(func() {
		require.NoError(t, unix.Shutdown(fd, unix.SHUT_RDWR))
		<-ended
		require.NoError(t, unix.Close(fd))
	})
	return tid, uint16(name.(*unix.SockaddrInet4).Port), uint32(st.Ino)
}
