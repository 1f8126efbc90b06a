package nettest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

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
	file, err := netns.New()
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = file.Close() })
	ns := &NS{tb: tb, file: file}
	ns.Do(func() {
		lo, err := netlink.LinkByName("lo")
		require.NoError(tb, err)
		require.NoError(tb, netlink.LinkSetUp(lo))
	})
	return ns
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
