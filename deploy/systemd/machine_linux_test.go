package systemd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// machine is a systemd that runs in namespaces of its own (testdata/boot.sh).
type machine struct {
	t   *testing.T
	dir string
	pid int // of its systemd, as seen from here
}

// files are what is put over the machine's root: path there → content.
type files map[string]string

// boot starts a machine with these files, after the setup has run in it as a
// shell script, and waits until its units are started.
func boot(t *testing.T, put files, setup string) *machine {
	t.Helper()
	needSystemd(t)
	m := &machine{t: t, dir: t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(m.dir, "machine"), 0o755))
	for path, content := range put {
		m.prepare(path, []byte(content))
	}
	for _, name := range []string{"basic", "sysinit", "shutdown", "multi-user", "sockets", "network"} {
		m.prepare("usr/lib/systemd/system/"+name+".target", []byte("[Unit]\nDefaultDependencies=no\n"))
	}
	// There is no journal; /dev/kmsg is the machine's log.
	m.prepare("usr/lib/systemd/system/service.d/log.conf", []byte("[Service]\nStandardOutput=append:/dev/kmsg\nStandardError=append:/dev/kmsg\n"))
	m.prepare("etc/machine-id", []byte("0123456789abcdef0123456789abcdef\n"))
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "setup"), []byte(setup), 0o600))
	m.start()
	return m
}

// needSystemd skips where no machine can be made, and fails there in CI.
func needSystemd(t *testing.T) {
	t.Helper()
	nettest.Root(t)
	for _, path := range []string{"/usr/lib/systemd/systemd", "/usr/bin/systemd-analyze"} {
		_, err := os.Stat(path)
		require.NoError(t, err, "Debian: systemd")
	}
}

func (m *machine) prepare(path string, content []byte) {
	m.t.Helper()
	path = filepath.Join(m.dir, "files", path)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	mode := os.FileMode(0o644)
	if strings.Contains(path, "/bin/") {
		mode = 0o755
	}
	require.NoError(m.t, os.WriteFile(path, content, mode))
}

func (m *machine) start() {
	script, err := filepath.Abs("testdata/boot.sh")
	require.NoError(m.t, err)
	group := controlGroup(m.t)
	log, err := os.Create(filepath.Join(m.dir, "log"))
	require.NoError(m.t, err)
	// The cgroup namespace is that of the group that the process is in when it
	// makes it: so in a second step.
	cmd := exec.Command("unshare", "--cgroup", "bash", script, m.dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		UseCgroupFD: true, CgroupFD: int(group.Fd()),
		Pdeathsig: syscall.SIGKILL,
	}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	require.NoError(m.t, cmd.Start())
	m.pid = cmd.Process.Pid
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill() // the first of its pid namespace: all others go with it
		_ = cmd.Wait()
		runtime.UnlockOSThread()
		if m.t.Failed() {
			m.t.Logf("the machine's log:\n%s", m.log())
		}
	})
	require.Eventually(m.t, func() bool {
		_, err := m.try("systemctl", "is-active", "multi-user.target")
		return err == nil
	}, time.Minute, 50*time.Millisecond, "it does not start")
}

func (m *machine) log() string {
	text, _ := os.ReadFile(filepath.Join(m.dir, "log"))
	return string(text)
}

// run runs a command in the machine and returns what it says.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := m.try(args...)
	require.NoError(m.t, err, "%q: %s\n%s", args, out, m.log())
	return out
}

func (m *machine) try(args ...string) (string, error) {
	out, err := m.command(args...).CombinedOutput()
	return string(bytes.TrimSpace(out)), err
}

func (m *machine) command(args ...string) *exec.Cmd {
	enter := []string{"--target", strconv.Itoa(m.pid), "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--root", "--wd"}
	cmd := exec.CommandContext(m.t.Context(), "nsenter", append(append(enter, "--"), args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SYSTEMD_PAGER=cat", "HOME=/root"}
	return cmd
}

// write changes a file of the running machine.
func (m *machine) write(path, content string) {
	m.t.Helper()
	cmd := m.command("bash", "-c", `mkdir -p "${0%/*}" && cat >"$0"`, path)
	cmd.Stdin = strings.NewReader(content)
	out, err := cmd.CombinedOutput()
	require.NoError(m.t, err, "%s", out)
}

// get fetches a page from within the machine.
func (m *machine) get(url string) (string, error) {
	return m.try("curl", "--silent", "--show-error", "--fail", "--max-time", "5", url)
}

// controlGroup makes a cgroup (version 2) below the test's own; it goes with
// everything that the machine makes in it.
func controlGroup(t *testing.T) *os.File {
	t.Helper()
	path := filepath.Join(ownGroup(t), "tcpdiag-systemd-"+strconv.Itoa(os.Getpid()))
	require.NoError(t, os.Mkdir(path, 0o755))
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return removeGroup(path) }, time.Minute, 20*time.Millisecond, path)
	})
	dir, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

// ownGroup is where the test's cgroup is in the file system.
func ownGroup(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	var mount string
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[2] == "cgroup2" {
			mount = f[1]
			break
		}
	}
	require.NotEmpty(t, mount, "no cgroup2 is mounted: systemd needs one")
	own, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	for line := range strings.Lines(string(own)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return filepath.Join(mount, path)
		}
	}
	t.Fatalf("no cgroup2 in /proc/self/cgroup: %s", own)
	return ""
}

// removeGroup removes empty groups from the leaves up.
func removeGroup(path string) bool {
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.IsDir() {
			removeGroup(filepath.Join(path, e.Name()))
		}
	}
	err := os.Remove(path)
	return err == nil || os.IsNotExist(err)
}
