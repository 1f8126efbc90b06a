package cgroup

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

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
	fs, err := hostproc.NewFS("/proc")
	if err != nil {
		return err
	}
	r, err := newReading(fs, pid)
	if err != nil {
		return err
	}
	defer r.close()
	r.ours = nil // as in a container, where only its own group is mounted
	c := r.read()
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"path": c.Path, "limit": c.CPULimit})
}

// TestMain doubles as the processes that the tests read.
func TestMain(m *testing.M) {
	proctest.Main(m, map[string]func(arg string) error{"beside": childBeside})
}
