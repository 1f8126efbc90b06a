package owner

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

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/memory"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
)

const (
	childMode = "OWNER_TEST_CHILD"
	nobody    = 65534
)

// TestMain doubles as the processes that the tests read.
func TestMain(m *testing.M) {
	runtime.LockOSThread() // the main thread's name is the process's
	mode := os.Getenv(childMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := runChild(mode); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

func runChild(mode string) error {
	var spec childSpec
	if err := json.Unmarshal([]byte(os.Getenv("OWNER_TEST_SPEC")), &spec); err != nil {
		return err
	}
	switch mode {
	case "serve":
		return serve(spec)
	case "find":
		return find(spec)
	}
	return fmt.Errorf("no mode %q", mode)
}

// childSpec says what a child does.
type childSpec struct {
	Comm    string   // its name
	Fillers int      // sockets opened before the listener
	Listen  bool     // whether it opens a listener, on any port
	NetNS   bool     // in a network namespace of its own
	Threads []string // names of threads; PORT stands for the listener's port

	HideIn  string // where "find" mounts a proc with hidepid=2
	PID     int    // whose sockets "find" lists
	Sockets []Socket
}

// serve prints its listener as JSON and then obeys: "move" gives the listener
// another descriptor, "rename" the process another name.
func serve(spec childSpec) error {
	if spec.NetNS {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
	}
	var s Socket
	fd := -1
	if err := openFillers(spec.Fillers); err != nil {
		return err
	}
	if spec.Listen {
		var err error
		if fd, s, err = listen(); err != nil {
			return err
		}
	}
	if err := nameThreads(spec, s.Port); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		return err
	}
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		if commands.Text() == "rename" {
			if err := os.WriteFile("/proc/self/comm", []byte("renamed"), 0); err != nil {
				return err
			}
			fmt.Println("renamed")
			continue
		}
		moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 500)
		if err != nil {
			return err
		}
		_ = unix.Close(fd)
		fd = moved
		fmt.Println("moved")
	}
	return nil
}

func openFillers(n int) error {
	for range n {
		if _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
	}
	return nil
}

func listen() (int, Socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, Socket{}, err
	}
	if err := unix.Listen(fd, 1); err != nil {
		return -1, Socket{}, err
	}
	s, err := socketOf(fd)
	return fd, s, err
}

func socketOf(fd int) (Socket, error) {
	address, err := unix.Getsockname(fd)
	if err != nil {
		return Socket{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Socket{}, err
	}
	return Socket{Inode: uint32(st.Ino), Port: uint16(address.(*unix.SockaddrInet4).Port), UID: st.Uid}, nil
}

func nameThreads(spec childSpec, port uint16) error {
	named := make(chan error)
	for _, name := range spec.Threads {
		name = strings.ReplaceAll(name, "PORT", strconv.Itoa(int(port)))
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
	if spec.Comm == "" {
		return nil
	}
	return os.WriteFile("/proc/self/comm", []byte(spec.Comm), 0)
}

// findResult is what another user finds.
type findResult struct {
	Found  map[uint32]Process
	Denied map[int]string // kind of error by pid
	Held   map[uint32]Process
	HeldIs string
}

func find(spec childSpec) error {
	mount := "/proc"
	if spec.HideIn != "" {
		mount = spec.HideIn
		err := errors.Join(
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("proc", mount, "proc", 0, "hidepid=2"),
			syscall.Setgroups(nil), syscall.Setresgid(nobody, nobody, nobody), syscall.Setresuid(nobody, nobody, nobody),
		)
		if err != nil {
			return err
		}
	}
	proc, err := hostproc.NewFS(mount)
	if err != nil {
		return err
	}
	f := New(proc)
	f.CommandLines(func(pid int, _ uint64) (out []uint16) { // as those whose work it is do
		words, _ := proc.WithMemory(memory.Here{}).Cmdline("", pid)
		for word := range strings.FieldsFuncSeq(strings.Join(words, " "), func(r rune) bool { return r < '0' || r > '9' }) {
			if n, err := strconv.ParseUint(word, 10, 16); err == nil {
				out = append(out, uint16(n))
			}
		}
		return out
	})
	r := findResult{Denied: map[int]string{}}
	var denied []Denied
	for range 2 { // the second answer comes from memory, and is the same
		r.Found, denied = f.Find(spec.Sockets)
	}
	for _, d := range denied {
		r.Denied[d.PID] = kind(d.Err)
	}
	var inodes []uint32
	for _, s := range spec.Sockets {
		inodes = append(inodes, s.Inode)
	}
	r.Held, err = f.OwnedBy(spec.PID, inodes)
	r.HeldIs = kind(err)
	return json.NewEncoder(os.Stdout).Encode(r)
}

func kind(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, hostproc.ErrNoProcess):
		return "gone"
	case errors.Is(err, hostproc.ErrInvisible):
		return "invisible"
	case errors.Is(err, iofs.ErrPermission):
		return "permission"
	}
	return err.Error()
}

type option func(*exec.Cmd)

func asUser(id uint32) option {
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	}
}

func withArgs(args ...string) option {
	return func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, args...) }
}

func withFile(f *os.File) option {
	return func(cmd *exec.Cmd) { cmd.ExtraFiles = append(cmd.ExtraFiles, f) }
}

func childCommand(t *testing.T, mode string, spec childSpec, options ...option) *exec.Cmd {
	t.Helper()
	data, err := json.Marshal(spec)
	require.NoError(t, err)
	// By this name another user may start it whatever folder it is in.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childMode+"="+mode, "OWNER_TEST_SPEC="+string(data))
	cmd.Stderr = os.Stderr
	for _, o := range options {
		o(cmd)
	}
	return cmd
}

// child is a process that may own a listener.
type child struct {
	*exec.Cmd
	Socket
	in  io.WriteCloser
	out *bufio.Scanner
}

func (c *child) pid() int { return c.Process.Pid }

func (c *child) stop() {
	_ = c.in.Close()
	_ = c.Process.Kill()
	_ = c.Wait()
}

func start(t *testing.T, spec childSpec, options ...option) *child {
	t.Helper()
	c := &child{Cmd: childCommand(t, "serve", spec, options...)}
	var err error
	c.in, err = c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(c.stop)
	c.out = bufio.NewScanner(out)
	require.True(t, c.out.Scan(), "the child ended before it was ready")
	require.NoError(t, json.Unmarshal(c.out.Bytes(), &c.Socket))
	return c
}

// do has the child obey a command.
func (c *child) do(t *testing.T, command string) {
	t.Helper()
	_, err := c.in.Write([]byte(command + "\n"))
	require.NoError(t, err)
	require.True(t, c.out.Scan())
}

// findAs is what a user other than root finds.
func findAs(t *testing.T, spec childSpec, options ...option) findResult {
	t.Helper()
	out, err := childCommand(t, "find", spec, options...).Output()
	require.NoError(t, err)
	var r findResult
	require.NoError(t, json.Unmarshal(out, &r))
	return r
}

// counting counts what a search costs.
type counting struct {
	hostproc.FS
	readlinks, listings, stats int
}

func newCounting(t *testing.T, mount string) *counting {
	t.Helper()
	proc := hostfs.At(t, mount)
	return &counting{FS: proc}
}

func (c *counting) PIDs() ([]int, error) {
	c.listings++
	return c.FS.PIDs()
}

func (c *counting) Stat(pid int) (hostproc.Stat, error) {
	c.stats++
	return c.FS.Stat(pid)
}

func (c *counting) SocketAt(pid, fd int) (uint32, bool) {
	c.readlinks++
	return c.FS.SocketAt(pid, fd)
}

// SocketFiles counts the sockets that a search gets: the readlinks of a process
// that has nothing but sockets.
func (c *counting) SocketFiles(pid, from, limit int, fn func(fd int, inode uint32) bool) (int, error) {
	return c.FS.SocketFiles(pid, from, limit, func(fd int, inode uint32) bool {
		c.readlinks++
		return fn(fd, inode)
	})
}
