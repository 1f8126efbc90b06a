package observability

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/tcpdiag/tcpdiag/internal/test/e2e"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// The environment of the tests.
const (
	enable = "TCPDIAG_SERVERS"       // 1 runs the whole stack (make test sets it)
	inside = "TCPDIAG_OBS_ARTIFACTS" // set within the namespace: what was built outside
)

// TestMain builds with the machine's network, then runs the tests in a network
// namespace of their own: its counters are theirs alone, and all ports are free.
func TestMain(m *testing.M) {
	if os.Getenv(enable) != "1" || os.Geteuid() != 0 {
		os.Exit(m.Run()) // what needs the stack says why it is skipped
	}
	if os.Getenv(inside) == "" {
		os.Exit(reexec())
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "observability:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// reexec runs the tests in a new namespace and returns their exit code.
func reexec() int {
	err := again()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "observability:", err)
	return 1
}

func again() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "tcpdiag-obs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	built, err := e2e.Build(ctx, dir)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(built)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"="+string(encoded))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	return cmd.Run()
}

// prepare brings the namespace's loopback up, and lets all stories run at the
// same time: they wait far more than they work.
func prepare() error {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// artifacts skips the test where it cannot run.
func artifacts(t *testing.T) e2e.Artifacts {
	t.Helper()
	if os.Getenv(enable) != "1" {
		t.Skipf("runs Tomcat, Prometheus and Alertmanager for two minutes: set %s=1 (make test does)", enable)
	}
	nettest.Root(t)
	for _, names := range [][]string{{"prometheus"}, {"alertmanager", "prometheus-alertmanager"}} {
		if _, err := installed(names...); err != nil && os.Getenv("CI") != "true" {
			t.Skipf("%v (Debian: prometheus, prometheus-alertmanager)", err)
		}
	}
	var a e2e.Artifacts
	require.NoError(t, json.Unmarshal([]byte(os.Getenv(inside)), &a))
	return a
}
