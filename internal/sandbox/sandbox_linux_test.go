package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// confinedVariable makes the test program a process that confines itself, tries
// what it must not be able to do, and says how each attempt ended.
const confinedVariable = "TCPDIAG_TEST_CONFINED"

// attempt is what such a process is to do.
type attempt struct {
	Identity Identity
	Limits   Limits
	Folder   string
	Do       string
	OnlyOpen bool // and a file of the folder is handed over
}

func TestMain(m *testing.M) {
	text, ok := os.LookupEnv(confinedVariable)
	if !ok {
		os.Exit(m.Run())
	}
	var a attempt
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		panic(err)
	}
	if err := a.run(); err != nil {
		fmt.Println(err)
		if errors.Is(err, ErrIdentity) {
			os.Exit(3)
		}
		os.Exit(4)
	}
}

func (a attempt) run() error {
	folder, err := os.Open(a.Folder)
	if err != nil {
		return err
	}
	if a.Do == "stop" {
		if err := EndWithin(100 * time.Millisecond); err != nil {
			return err
		}
	}
	if a.OnlyOpen {
		return a.handed(folder)
	}
	if err := Limit(a.Limits); err != nil {
		return err
	}
	if err := Become(a.Identity); err != nil {
		return err
	}
	if a.Do == "stop" {
		return syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	}
	if err := Confine(folder); err != nil {
		return err
	}
	return a.do(folder)
}

// handed has a file waiting in a socket when this process gives up everything.
func (a attempt) handed(folder *os.File) error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(a.Folder, "file"))
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(ends[0], []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0); err != nil {
		return err
	}
	if err := OnlyOpen(a.Limits); err != nil {
		return err
	}
	if a.Do != "receive" {
		return a.do(folder)
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(ends[1], make([]byte, 1), rights, 0)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return err
	}
	list, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	text := make([]byte, 5)
	if _, err := unix.Pread(list[0], text, 0); err != nil || string(text) != "hello" {
		return fmt.Errorf("%q, %w", text, err)
	}
	return nil
}

func (a attempt) do(folder *os.File) error {
	in := func(name string) string { return filepath.Join(a.Folder, name) }
	switch a.Do {
	case "read":
		f, err := unix.Openat(int(folder.Fd()), "file", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(os.NewFile(uintptr(f), "file"))
		if string(text) != "hello" {
			return fmt.Errorf("%q, %w", text, err)
		}
		return nil
	case "read elsewhere":
		_, err := os.ReadFile("/etc/passwd")
		return err
	case "list":
		_, err := unix.ReadDirent(int(folder.Fd()), make([]byte, 4096))
		return err
	case "follow":
		_, err := os.Readlink("/proc/self/exe")
		return err
	case "receive":
		_, _, _, _, err := unix.Recvmsg(0, make([]byte, 1), nil, unix.MSG_DONTWAIT) // no socket, where it is asked
		return err
	case "write":
		return os.WriteFile(in("new"), []byte("x"), 0o600)
	case "append":
		_, err := os.OpenFile(in("file"), os.O_WRONLY|os.O_APPEND, 0)
		return err
	case "truncate":
		return os.Truncate(in("file"), 0)
	case "remove":
		return os.Remove(in("file"))
	case "connect":
		_, err := net.Dial("tcp", "127.0.0.1:1")
		return err
	case "unix socket":
		_, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return err
	case "exec":
		return syscall.Exec("/bin/true", []string{"true"}, nil)
	case "fork":
		return exec.Command("/bin/true").Run()
	case "kill":
		return syscall.Kill(os.Getppid(), 0)
	case "ptrace":
		return syscall.PtraceAttach(os.Getppid())
	case "regain":
		return syscall.Setresuid(0, 0, 0)
	case "mount":
		return unix.Mount("x", in(""), "tmpfs", 0, "")
	case "memory":
		var hold [][]byte
		for range 1 << 10 {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			hold = append(hold, b)
		}
		return fmt.Errorf("%d MB", len(hold))
	case "spin":
		for start := time.Now(); time.Since(start) < time.Minute; {
		}
		return errors.New("a minute")
	}
	return errors.New("no such attempt")
}

func try(t *testing.T, a attempt, change func(*exec.Cmd)) (string, *os.ProcessState) {
	t.Helper()
	text, err := json.Marshal(a)
	require.NoError(t, err)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{confinedVariable + "=" + string(text), "GOTRACEBACK=none"}
	if change != nil {
		change(cmd)
	}
	out, err := cmd.CombinedOutput()
	require.NotNil(t, cmd.ProcessState, err)
	return string(out), cmd.ProcessState
}

func ourselves() Identity { return Identity{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())} }

// public is a folder that any user can reach, with one file.
func public(t *testing.T) string {
	t.Helper()
	dir := proctest.PublicDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("hello"), 0o644))
	return dir
}

func TestConfined(t *testing.T) {
	limits := Limits{Memory: 64 << 20, CPU: 2, Files: 64}
	dir := public(t)
	identities := map[string]Identity{"ourselves": ourselves()}
	if os.Geteuid() == 0 {
		identities["another"] = Identity{UID: 12345, GID: 23456, Groups: []uint32{7, 8}}
	}
	for who, id := range identities {
		out, state := try(t, attempt{id, limits, dir, "read", false}, nil)
		require.True(t, state.Success(), "%s: %s", who, out)
		for _, do := range []string{
			"read elsewhere", "receive", "write", "append", "truncate", "remove", "connect", "unix socket", "exec", "fork", "kill", "ptrace", "regain", "mount",
		} {
			out, state := try(t, attempt{id, limits, dir, do, false}, nil)
			require.Equal(t, 4, state.ExitCode(), "%s: %s: %s", who, do, out)
			require.Regexp(t, "permission denied|not permitted", out, "%s: %s", who, do)
		}
	}
}

// A process that is handed what it reads opens nothing, and not because of Landlock (which says "permission denied"),
// which not every kernel has.
func TestOnlyOpen(t *testing.T) {
	limits := Limits{Memory: 64 << 20, CPU: 2, Files: 64}
	dir := public(t)
	out, state := try(t, attempt{ourselves(), limits, dir, "receive", true}, nil)
	require.True(t, state.Success(), out)
	for _, do := range []string{
		"read", "read elsewhere", "list", "follow", "write", "append", "truncate", "remove", "connect", "unix socket", "exec", "fork", "kill", "ptrace",
		"regain", "mount",
	} {
		out, state := try(t, attempt{ourselves(), limits, dir, do, true}, nil)
		require.Equal(t, 4, state.ExitCode(), "%s: %s", do, out)
		require.Contains(t, out, "not permitted", do)
	}
}

func TestLimits(t *testing.T) {
	dir := public(t)
	out, state := try(t, attempt{ourselves(), Limits{Memory: 64 << 20, CPU: 60, Files: 64}, dir, "memory", false}, nil)
	require.False(t, state.Success())
	require.Regexp(t, "out of memory|[Cc]annot allocate|failed to allocate", out)
	out, state = try(t, attempt{ourselves(), Limits{Memory: 64 << 20, CPU: 1, Files: 64}, dir, "spin", false}, nil)
	require.False(t, state.Success(), out)
	require.Equal(t, syscall.SIGKILL, state.Sys().(syscall.WaitStatus).Signal(), out)
	require.Less(t, state.UserTime()+state.SystemTime(), 10*time.Second)
}

// Stopped, and as another user, whom who started it may have no right to kill.
func TestEndWithin(t *testing.T) {
	id := ourselves()
	if id.UID == 0 {
		id = Identity{UID: 12345, GID: 23456}
	}
	out, state := try(t, attempt{id, Limits{Memory: 64 << 20, CPU: 60, Files: 64}, public(t), "stop", false}, nil)
	require.Equal(t, syscall.SIGKILL, state.Sys().(syscall.WaitStatus).Signal(), out)
}

// A capability that is not there fails silently in setfsuid(2); nothing is read
// as somebody else then.
func TestIdentityThatCannotBeTaken(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it takes capabilities away")
	}
	dir := public(t)
	limits := Limits{Memory: 64 << 20, CPU: 2, Files: 64}
	other := Identity{UID: 12345, GID: 23456}
	for name, keep := range map[string][]uintptr{
		"none": nil, "SYS_ADMIN and SYS_PTRACE": {unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE},
		"SETUID": {unix.CAP_SETUID}, "SETGID": {unix.CAP_SETGID},
	} {
		nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
		out, state := try(t, attempt{other, limits, dir, "read", false}, func(cmd *exec.Cmd) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody, AmbientCaps: keep}
		})
		require.Equal(t, 3, state.ExitCode(), "%s: %s", name, out)
	}
	out, state := try(t, attempt{other, limits, dir, "read", false}, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: []uintptr{unix.CAP_SETUID, unix.CAP_SETGID},
		}
	})
	require.True(t, state.Success(), out)
}

func TestParseStatus(t *testing.T) {
	s := parseStatus([]byte("Name:\tx\nUid:\t1\t1\t1\t0\nGid:\t2\t2\t2\t2\nGroups:\t7 8 \nCapInh:\t0000\nCapPrm:\t0\nCapEff:\t0\nCapAmb:\t0\nNoNewPrivs:\t1\n"))
	require.ErrorIs(t, s.is(Identity{UID: 1, GID: 2}), ErrIdentity, "the file system id")
	s["Uid"] = "1 1 1 1"
	require.NoError(t, s.is(Identity{UID: 1, GID: 2}))
	require.ErrorIs(t, s.is(Identity{UID: 1, GID: 3}), ErrIdentity)
	require.NoError(t, s.hasGroups(Identity{Groups: []uint32{8, 7}}))
	require.ErrorIs(t, s.hasGroups(Identity{Groups: []uint32{8}}), ErrIdentity)
	require.NoError(t, s.powerless())
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		had := s[set]
		s[set] = "00000000000000c0"
		require.ErrorIs(t, s.powerless(), ErrPowers, set)
		s[set] = had
	}
	s["NoNewPrivs"] = "0"
	require.ErrorIs(t, s.powerless(), ErrPowers)
}
