package owner

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/memory"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

const nobody = proctest.Nobody

// TestMain doubles as the processes that the tests read.
func TestMain(m *testing.M) {
	proctest.Main(m, map[string]func(string) error{"serve": ofSpec(serve), "find": ofSpec(find)})
}

func ofSpec(run func(childSpec) error) func(string) error {
	return func(arg string) error {
		var spec childSpec
		if err := json.Unmarshal([]byte(arg), &spec); err != nil {
			return err
		}
		return run(spec)
	}
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
	fmt.Println("ready")
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
	for _, name := range spec.Threads {
		if err := proctest.StartThreads(strings.ReplaceAll(name, "PORT", strconv.Itoa(int(port)))); err != nil {
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

type option = func(*exec.Cmd)

func withArgs(args ...string) option {
	return func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, args...) }
}

func withFile(f *os.File) option {
	return func(cmd *exec.Cmd) { cmd.ExtraFiles = append(cmd.ExtraFiles, f) }
}

// child is a process that may own a listener.
type child struct {
	*proctest.Child
	Socket
}

func start(t *testing.T, spec childSpec, options ...option) *child {
	t.Helper()
	c := &child{Child: proctest.Start(t, "serve", text(t, spec), options...)}
	require.NoError(t, json.Unmarshal([]byte(c.Lines[0]), &c.Socket))
	return c
}

func text(t *testing.T, spec childSpec) string {
	t.Helper()
	data, err := json.Marshal(spec)
	require.NoError(t, err)
	return string(data)
}

// findAs is what a user other than root finds.
func findAs(t *testing.T, spec childSpec, options ...option) findResult {
	t.Helper()
	out, err := proctest.Command(t, "find", text(t, spec), options...).Output()
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
