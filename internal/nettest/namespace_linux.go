package nettest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/netns"
)

// NS is a network namespace of a test. It has no name, so that nothing stays
// behind when the test is killed: this process's descriptor keeps it.
type NS struct {
	tb    testing.TB
	file  *os.File
	links int // veth pairs so far
}

// Namespace makes a fresh network namespace with its loopback up. It needs
// root (see Root).
func Namespace(tb testing.TB) *NS {
	tb.Helper()
	Root(tb)
	type made struct {
		file *os.File
		err  error
	}
	result := make(chan made)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		file, err := unshare()
		result <- made{file, err}
	}()
	m := <-result
	require.NoError(tb, m.err)
	tb.Cleanup(func() { _ = m.file.Close() })
	return &NS{tb: tb, file: m.file}
}

func unshare() (*os.File, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("unshare: %w", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return nil, err
	}
	return os.Open("/proc/thread-self/ns/net")
}

// Path is a path of the namespace that other processes can open too.
func (ns *NS) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.file.Fd()) }

// Do runs fn within the namespace; tb.FailNow in it ends the test.
func (ns *NS) Do(fn func()) {
	ns.tb.Helper()
	require.NoError(ns.tb, netns.Do(ns.Path(), func() error {
		fn()
		return nil
	}))
}

// Sysctl sets a kernel parameter of the namespace, "net.ipv4.tcp_syncookies".
func (ns *NS) Sysctl(tb testing.TB, name, value string) {
	tb.Helper()
	ns.Do(func() {
		require.NoError(tb, os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0o600))
	})
}

// Command prepares a process that runs within the namespace. Its pid is the
// program's own: nsenter (util-linux) replaces itself.
func (ns *NS) Command(name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ns.tb.Context(), "nsenter", append([]string{"--net=" + ns.Path(), "--", name}, args...)...)
}
