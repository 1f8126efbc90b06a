package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// The environment of the tests.
const (
	enable = "TCPDIAG_SERVERS"       // 1 runs them (make test sets it)
	binary = "TCPDIAG_E2E_BINARY"    // a tcpdiag to test instead of building one
	inside = "TCPDIAG_E2E_ARTIFACTS" // set within the namespace: what was built outside
)

// TestMain builds with the machine's network, then runs the tests in a network
// namespace of their own: its counters are theirs alone, and all ports are free.
// Their mount namespace is their own too: what they mount goes with them.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(enable) != "1" || os.Geteuid() != 0:
		os.Exit(m.Run()) // every test says why it is skipped
	case os.Getenv(inside) == "":
		code, err := reexec()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}
	if err := loopbackUp(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: loopback:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func reexec() (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "tcpdiag-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // user nobody runs what lies there
		return 1, err
	}
	built, err := Build(ctx, dir)
	if err != nil {
		return 1, err
	}
	if given := os.Getenv(binary); given != "" {
		built.Tcpdiag = given
	}
	encoded, err := json.Marshal(built)
	if err != nil {
		return 1, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"="+string(encoded))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// artifacts skips the test where it cannot run.
func artifacts(t *testing.T) Artifacts {
	t.Helper()
	if os.Getenv(enable) != "1" {
		t.Skipf("drives a real Tomcat for minutes: set %s=1 (make test does)", enable)
	}
	nettest.Root(t)
	var a Artifacts
	require.NoError(t, json.Unmarshal([]byte(os.Getenv(inside)), &a))
	return a
}

// within waits for something that is bound to come.
func within(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			require.FailNow(t, "not within "+limit.String(), what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
