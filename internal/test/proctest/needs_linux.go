package proctest

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// NeedRoot skips, but only where nobody relies on the test.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("needs root, and in CI it is a failure not to have it")
	}
	t.Skip("needs root: it starts processes of other users and namespaces")
}

// NeedJava finds a JVM; without one the test is skipped, in CI it fails.
func NeedJava(t *testing.T) string {
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

// MoveToNetNS moves the test's thread into a network namespace of its own, with
// lo up. The thread ends with the test. It returns the thread's id:
// /proc/TID/net is its namespace's.
func MoveToNetNS(t *testing.T) int {
	t.Helper()
	NeedRoot(t)
	runtime.LockOSThread()
	require.NotEqual(t, unix.Getpid(), unix.Gettid(), "the main thread must stay")
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
	require.NoError(t, LoopbackUp())
	return unix.Gettid()
}

// LoopbackUp turns on the loopback of the calling thread's network namespace.
func LoopbackUp() error {
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
