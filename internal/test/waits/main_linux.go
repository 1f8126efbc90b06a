package main

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
	"syscall"
	"time"
)

// inside says, within the namespace, where what was built outside of it is.
const inside = "TCPDIAG_WAITS_DIR"

func main() {
	only := flag.String("run", "", "regular expression: only the cases of that name, without writing the table")
	table := flag.String("table", "docs/waits.md", "file of the table")
	decoyed := flag.Duration("decoy", time.Minute, "how long decoys are tried: a subscription and a long poll that are always in flight")
	flag.Parse()
	if err := run(*only, *table, *decoyed); err != nil {
		fmt.Fprintln(os.Stderr, "waits:", err)
		os.Exit(1)
	}
}

func run(only, table string, decoyed time.Duration) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if dir := os.Getenv(inside); dir != "" {
		if err := output(ctx, "", "ip", "link", "set", "lo", "up"); err != nil {
			return err
		}
		if only != "" {
			table = ""
		}
		return (&bench{ctx: ctx, dir: dir, decoyed: decoyed}).perform(pattern, table)
	}
	return enter(ctx)
}

// enter builds with the machine's network, and continues in a namespace of its own.
func enter(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "tcpdiag-waits-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL refuses to run as root
		return err
	}
	if err := output(ctx, "", "go", "build", "-o", dir+"/tcpdiag", "./cmd/tcpdiag"); err != nil {
		return err
	}
	if err := application(ctx, dir+"/waiting.jar"); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	if err := cmd.Run(); err != nil {
		return errors.New("a case failed")
	}
	return nil
}

// application builds the Spring Boot application in a copy of its sources.
func application(ctx context.Context, jar string) error {
	work, err := os.MkdirTemp("", "tcpdiag-waiting-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, os.DirFS("internal/test/waits/app")); err != nil {
		return err
	}
	if err := output(ctx, work, "mvn", "-q", "-B", "package"); err != nil {
		return err
	}
	return output(ctx, "", "cp", work+"/target/waiting.jar", jar)
}

// output runs a program whose output matters only when it fails.
func output(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", args[0], err, out)
	}
	return nil
}
