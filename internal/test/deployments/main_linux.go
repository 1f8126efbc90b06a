package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
)

// inside names, within the namespaces, what was built outside of them.
const inside = "TCPDIAG_DEPLOYMENTS_KIT"

func main() {
	only := flag.String("run", "", "regular expression: only the cases of that name")
	table := flag.String("table", "docs/deployments.md", "file of the table; its rows of other cases stay")
	draws := flag.Int("overloads", 0, "instead of the cases, that many overloads drawn from the seed")
	seed := flag.Uint64("seed", 1, "of the overloads")
	flag.Parse()
	if err := run(*only, *table, *draws, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "deployments:", err)
		os.Exit(1)
	}
}

func run(only, table string, draws int, seed uint64) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	encoded := os.Getenv(inside)
	if encoded == "" {
		return enter(ctx)
	}
	var k kit
	if err := json.Unmarshal([]byte(encoded), &k); err != nil {
		return err
	}
	if err := output(ctx, "", "ip", "link", "set", "lo", "up"); err != nil {
		return err
	}
	if draws > 0 {
		return overloads(ctx, &k, seed, draws, table)
	}
	return runCases(ctx, &k, pattern, table)
}

// enter builds with the machine's network, and continues in namespaces of its own.
func enter(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "tcpdiag-deployments-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	k, err := buildKit(ctx, dir)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(k)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"="+string(encoded))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return errors.New("a case failed")
	}
	return err
}
