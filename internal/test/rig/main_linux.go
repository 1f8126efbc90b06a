package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// Main is the TestMain of a package whose tests are proofs: it runs them in network and
// mount namespaces of their own. Where none is wanted it runs them as they are, and each
// says why it is skipped.
func Main(m *testing.M) { Prepared(m, func() error { return nil }) }

// Prepared is Main, with what is to be done inside before the tests.
func Prepared(m *testing.M, prepare func() error) {
	flag.Parse()
	switch {
	case os.Geteuid() != 0 || !proof.Wanted():
		os.Exit(m.Run())
	case os.Getenv(insideEnv) == "":
		code, err := enter()
		if err != nil {
			fmt.Fprintln(os.Stderr, "rig:", err)
			code = 1
		}
		os.Exit(code)
	}
	if err := errors.Join(proctest.LoopbackUp(), ownNames(), prepare()); err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// ownNames has ip-netns(8) keep its names for this run: it keeps them in files, which others that run beside it see.
func ownNames() error {
	const names = "/run/netns"
	if err := os.MkdirAll(names, 0o755); err != nil { //nolint:gosec // as ip-netns makes it
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil { // not even what ip-netns mounts over them outside
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("tmpfs", names, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", names, err)
	}
	return nil
}

// enter runs the program again in the namespaces. The parent stays in the machine's
// own, where the children build what needs a network (see Kit.Download).
func enter() (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "tcpdiag-rig-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users run what lies there
		return 1, err
	}
	if err := os.Setenv(outsideEnv, strconv.Itoa(os.Getpid())); err != nil {
		return 1, err
	}
	return Enter(ctx, insideEnv+"="+dir, unix.CLONE_NEWNET|unix.CLONE_NEWNS, os.Args[1:]...)
}

// aloneEnv is the test that has a network namespace of its own.
const aloneEnv = "TCPDIAG_RIG_ALONE"

// Alone runs the test again in a network namespace of its own, as a process that does
// not outlive the limit, and reports whether this is that process: counters, sysctls and
// ports are the test's alone.
func Alone(t *testing.T, limit time.Duration) bool {
	t.Helper()
	proof.Skip(t)
	nettest.Root(t)
	if os.Getenv(aloneEnv) == t.Name() {
		return true
	}
	var path []string
	for name := range strings.SplitSeq(t.Name(), "/") {
		path = append(path, "^"+regexp.QuoteMeta(name)+"$")
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.v", "-test.timeout", limit.String(), "-test.run", strings.Join(path, "/"))
	cmd.Env = append(os.Environ(), aloneEnv+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%v", err)
	}
	return false
}
