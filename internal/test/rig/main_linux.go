package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/crowd"
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
	if err := errors.Join(crowd.LoopbackUp(), prepare()); err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// enter runs the program again in the namespaces. The parent stays in the machine's
// own, where the children build what needs a network (see Kit.outside).
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
	return crowd.Enter(ctx, insideEnv+"="+dir, unix.CLONE_NEWNET|unix.CLONE_NEWNS, os.Args[1:]...)
}
