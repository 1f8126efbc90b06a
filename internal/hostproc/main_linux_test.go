package hostproc

import (
	"encoding/json"
	"errors"
	iofs "io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// TestMain doubles as the processes that the tests read.
func TestMain(m *testing.M) {
	proctest.Main(m, map[string]func(arg string) error{
		"probe":   func(arg string) error { return childProbe("/proc", arg) },
		"beside":  childBeside,
		"hidepid": childHidePID,
	})
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
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(proctest.Nobody, proctest.Nobody, proctest.Nobody), syscall.Setresuid(proctest.Nobody, proctest.Nobody, proctest.Nobody)); err != nil {
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

func probe(t *testing.T, mode, arg string, options ...func(*exec.Cmd)) probeResult {
	t.Helper()
	out, err := proctest.Command(t, mode, arg, options...).Output()
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
