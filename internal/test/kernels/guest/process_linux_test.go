package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/openfiles"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// stat("/proc/PID/fd").st_size is the number of open files since 6.2.
func TestOpenFilesByStat(t *testing.T) {
	inGuest(t)
	fs := proc(t)
	before, err := openfiles.Count(fs, os.Getpid())
	require.NoError(t, err)
	for range 10 {
		file, err := os.Open("/dev/null")
		require.NoError(t, err)
		defer file.Close()
	}
	after, err := openfiles.Count(fs, os.Getpid())
	require.NoError(t, err)
	require.Equal(t, before+10, after)
	require.Equal(t, kernelAtLeast(t, 6, 2), fs.CountsOpenFiles())
	report("open files by stat", "%s", yes(fs.CountsOpenFiles()))
}

// TestTCPInfo asks for more of struct tcp_info than any kernel has.
func TestTCPInfo(t *testing.T) {
	inGuest(t)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	var info [1024]byte
	size := uint32(len(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&info[0])), uintptr(unsafe.Pointer(&size)), 0)
	require.Zero(t, errno)
	require.GreaterOrEqual(t, size, uint32(216), "tcpi_bytes_retrans ends there")
	report("struct tcp_info", "%d bytes", size)
}

// sleeper is a process of nobody's; how may change it.
func sleeper(t *testing.T, how func(*syscall.SysProcAttr)) int {
	t.Helper()
	cmd := exec.Command("/bin/busybox", "sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	how(cmd.SysProcAttr)
	proctest.Run(t, cmd)
	return cmd.Process.Pid
}

func nobody(attr *syscall.SysProcAttr) { attr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534} }

// readAsNobody reads a file of a process with its own ids, without capabilities.
func readAsNobody(t *testing.T, path string) error {
	t.Helper()
	cmd := exec.Command("/bin/busybox", "cat", path)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	nobody(cmd.SysProcAttr)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.New(strings.TrimSpace(string(out)))
	}
	return nil
}

// wchan takes the right to read a process, syscall the right to attach to it,
// which Yama takes away from the same user.
func TestYama(t *testing.T) {
	inGuest(t)
	const scope = "/proc/sys/kernel/yama/ptrace_scope"
	if !exists(scope) {
		report("Yama", "no")
		return
	}
	pid := sleeper(t, nobody)
	for _, value := range []string{"0", "1"} {
		write(t, scope, value)
		require.NoError(t, readAsNobody(t, fmt.Sprintf("/proc/%d/task/%d/wchan", pid, pid)))
		err := readAsNobody(t, fmt.Sprintf("/proc/%d/task/%d/syscall", pid, pid))
		require.Equal(t, value == "0", err == nil, "%v", err)
	}
	write(t, scope, "0")
	report("Yama", "ptrace_scope 1 hides `syscall` from the same user, not `wchan`")
}

// Under hidepid another user's process does not exist.
func TestHidepid(t *testing.T) {
	inGuest(t)
	pid := sleeper(t, func(*syscall.SysProcAttr) {})
	path := fmt.Sprintf("/proc/%d/stat", pid)
	require.NoError(t, readAsNobody(t, path))
	require.NoError(t, unix.Mount("", "/proc", "", unix.MS_REMOUNT, "hidepid=2"))
	err := readAsNobody(t, path)
	require.NoError(t, unix.Mount("", "/proc", "", unix.MS_REMOUNT, "hidepid=0"))
	require.ErrorContains(t, err, "No such file")
	report("hidepid=2", "another user's process is ENOENT")
}

// In a time namespace with another boot time, a process's start is moved by
// what the reader's namespace says; age must not become negative or absurd.
func TestTimeNamespace(t *testing.T) {
	inGuest(t)
	if !exists("/proc/self/ns/time") {
		report("time namespaces", "no")
		return
	}
	pid := sleeper(t, func(attr *syscall.SysProcAttr) { attr.Cloneflags = unix.CLONE_NEWNS })
	fs := proc(t)
	p, err := fs.Process(pid)
	require.NoError(t, err)
	uptime, err := fs.Uptime()
	require.NoError(t, err)
	require.Less(t, p.Age(uptime), time.Minute)
	age := ageFromAnotherTime(t, pid)
	require.Less(t, age, time.Minute)
	require.GreaterOrEqual(t, age, time.Duration(0))
	report("time namespaces", "yes; a process's age is right from within another")
}

// ageFromAnotherTime runs this test binary in a time namespace that booted a
// day earlier, where /proc/uptime and stat are both moved.
func ageFromAnotherTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestAgeHere$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("TCPDIAG_AGE_OF=%d", pid))
	var text []byte
	failed := make(chan error)
	go func() { // on a thread of its own, which ends with the goroutine
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWTIME)
		if err == nil {
			err = os.WriteFile(fmt.Sprintf("/proc/%d/timens_offsets", unix.Gettid()), []byte("boottime 86400 0\n"), 0o600)
		}
		if err == nil {
			text, err = cmd.CombinedOutput()
		}
		failed <- err
	}()
	if err := <-failed; errors.Is(err, unix.EINVAL) {
		report("time namespaces", "yes, but vfork does not enter one")
		t.Skip("Go starts processes by vfork, which this kernel refuses here")
	} else {
		require.NoError(t, err, "%s", text)
	}
	_, after, found := strings.Cut(string(text), "moved, age ")
	require.True(t, found, "%s", text)
	age, err := time.ParseDuration(strings.Fields(after)[0])
	require.NoError(t, err, "%s", text)
	return age
}

// TestAgeHere is the part of TestTimeNamespace that runs in the other namespace.
func TestAgeHere(t *testing.T) {
	var pid int
	if _, err := fmt.Sscan(os.Getenv("TCPDIAG_AGE_OF"), &pid); err != nil {
		t.Skip("a part of TestTimeNamespace")
	}
	p, err := proc(t).Process(pid)
	require.NoError(t, err)
	uptime, err := proc(t).Uptime()
	require.NoError(t, err)
	require.Greater(t, uptime, 20*time.Hour)
	fmt.Printf("moved, age %v\n", p.Age(uptime))
}

func TestAppArmor(t *testing.T) {
	inGuest(t)
	text, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	report("AppArmor", "%s", yes(err == nil && strings.TrimSpace(string(text)) == "Y"))
}

// group makes a control group of version 2 with the limits of a container.
func group(t *testing.T, path string, limits map[string]string) string {
	t.Helper()
	dir := "/sys/fs/cgroup"
	for part := range strings.SplitSeq(path, "/") {
		write(t, filepath.Join(dir, "cgroup.subtree_control"), "+cpu +memory +pids")
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); !errors.Is(err, os.ErrExist) {
			require.NoError(t, err)
		}
	}
	for name, value := range limits {
		write(t, filepath.Join(dir, name), value)
	}
	return dir
}

const (
	podUID      = "0d5a3f4e-7c0b-4b5e-9f0a-1e2d3c4b5a69"
	containerID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// What the two drivers of Kubernetes name their groups, with real limits in
// force: a busy process is throttled, and one that forks is stopped.
func TestCgroupOfAContainer(t *testing.T) {
	inGuest(t)
	for driver, path := range map[string]string{
		"systemd": "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(podUID, "-", "_") +
			".slice/cri-containerd-" + containerID + ".scope",
		"cgroupfs": "kubepods/burstable/pod" + podUID + "/" + containerID,
	} {
		t.Run(driver, func(t *testing.T) {
			dir := group(t, path, map[string]string{"cpu.max": "20000 100000", "memory.max": "67108864", "pids.max": "3"})
			cmd := exec.Command("/bin/busybox", "sh", "-c", "while :; do :; done")
			require.NoError(t, cmd.Start())
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			write(t, filepath.Join(dir, "cgroup.procs"), fmt.Sprint(cmd.Process.Pid))
			c := throttled(t, cmd.Process.Pid)
			require.Equal(t, containerID, c.ContainerID)
			require.Equal(t, podUID, c.PodUID)
			require.InDelta(t, 0.2, *c.CPULimit, 1e-9)
			require.EqualValues(t, 64<<20, *c.MemoryLimit)
			require.EqualValues(t, 3, *c.PidsLimit)
			report("cgroup v2, "+driver+" driver", "container, pod, CPU, memory and pids limits; throttling")
		})
	}
}

func throttled(t *testing.T, pid int) cgroup.Group {
	t.Helper()
	var c cgroup.Group
	require.Eventually(t, func() bool {
		var err error
		c, err = cgroup.Of(proc(t), pid)
		return err == nil && c.Throttled != nil && *c.Throttled > 0 && *c.NrThrottled > 0
	}, time.Minute, 50*time.Millisecond)
	return c
}
