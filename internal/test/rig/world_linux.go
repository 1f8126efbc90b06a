package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// Apart are namespaces for a world of its own: network, so that nothing of the
// machine's is touched or counted; processes, so that nothing stays behind when
// process 1 ends; mounts, for the /proc that belongs to it.
const Apart = unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS

// Enter runs this program again with namespaces of its own, and answers its exit code.
// env, NAME=value, is set in its environment, to inform it that it has them.
func Enter(ctx context.Context, env string, flags uintptr, args ...string) (code int, err error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), env)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// Furnish makes the fresh namespaces usable.
func Furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := proctest.LoopbackUp(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// World is Enter into a world of its own; an exit code other than 0 is an error.
func World(ctx context.Context, variable string, args ...string) error {
	code, err := Enter(ctx, variable+"=1", Apart, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("ended with %d", code)
	}
	return err
}
