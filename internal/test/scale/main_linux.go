package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// worldVariable informs the program that it has its namespaces.
const worldVariable = "TCPDIAG_SCALE_WORLD"

func main() {
	if code, ok := runHung(); ok {
		os.Exit(code)
	}
	if code, ok := rig.RunChild(os.Args[1:]); ok {
		os.Exit(code)
	}
	if code, ok := runShortLived(os.Args[1:]); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, parse())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// run builds the program and then starts this one again inside namespaces of its
// own, where process 1's end ends all.
func run(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeout(ctx, o.Deadline)
	defer cancel()
	if os.Getenv(worldVariable) != "" {
		return measure(ctx, o)
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root: it makes namespaces")
	}
	dir, err := os.MkdirTemp("", "tcpdiag-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.Tcpdiag == "" {
		o.Tcpdiag = filepath.Join(dir, "tcpdiag")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", o.Tcpdiag, "github.com/tcpdiag/tcpdiag/cmd/tcpdiag")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
		out, err := build.CombinedOutput()
		if err != nil {
			return fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	if o.Out, err = filepath.Abs(o.Out); err != nil {
		return err
	}
	if o.Profiles != "" {
		if o.Profiles, err = filepath.Abs(o.Profiles); err != nil {
			return err
		}
	}
	return rig.World(ctx, worldVariable, "-only", o.Only, "-sockets", strconv.Itoa(o.Sockets),
		"-namespaces", strconv.Itoa(o.Namespaces), "-ends", strconv.Itoa(o.Ends), "-calm", o.Calm.String(),
		"-out", o.Out, "-tcpdiag", o.Tcpdiag, "-profiles", o.Profiles, "-deadline", o.Deadline.String())
}
