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
	"time"
)

// inside names, within the namespaces, what was built outside of them.
const inside = "TCPDIAG_DEPLOYMENTS_KIT"

// task is what one run does: the cases, if it is nothing else.
type task struct {
	only, table  string
	advice       bool
	healthy      time.Duration
	draws, after int
	seed         uint64
}

func main() {
	var t task
	flag.StringVar(&t.only, "run", "", "regular expression: only the cases of that name")
	flag.StringVar(&t.table, "table", "docs/deployments.md", "file of the table; its rows of other cases stay")
	flag.BoolVar(&t.advice, "advice", false, "instead of the cases, those whose advice is followed")
	flag.DurationVar(&t.healthy, "healthy", 0, "instead of the cases, a healthy load that lasts this long")
	flag.IntVar(&t.draws, "overloads", 0, "instead of the cases, that many overloads drawn from the seed")
	flag.IntVar(&t.after, "after", 0, "of the overloads the rows up to this one stay")
	flag.Uint64Var(&t.seed, "seed", 1, "of the overloads")
	flag.Parse()
	if err := t.run(); err != nil {
		fmt.Fprintln(os.Stderr, "deployments:", err)
		os.Exit(1)
	}
}

func (t task) run() error {
	pattern, err := regexp.Compile(t.only)
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
	switch {
	case t.advice:
		return advice(ctx, &k, pattern, t.table)
	case t.healthy > 0:
		return healthy(ctx, &k, t.healthy, t.table)
	case t.draws > 0:
		return overloads(ctx, &k, t.seed, t.after, t.draws, t.table)
	}
	return runCases(ctx, &k, pattern, t.table)
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
