package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// here is the name of this machine's column: what calls cost on its kernel,
// which nothing emulates.
const here = "here"

// measureHere runs the benchmarks that compare with bare calls on this machine.
func (l *lab) measureHere(ctx context.Context) error {
	if os.Getuid() != 0 {
		fmt.Println("here: not measured, as this is not root")
		return nil
	}
	dir := filepath.Join(l.work, here)
	var costs []binary
	for _, b := range features() {
		if b.Bench != "" {
			costs = append(costs, b)
		}
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	console, err := os.Create(l.log(here))
	if err != nil {
		return err
	}
	defer console.Close()
	fmt.Fprintf(console, "@@boot 0 %s %s\n", strings.TrimSpace(string(release)), runtime.GOARCH)
	for _, b := range costs {
		if err := compileTests(ctx, dir, runtime.GOARCH, b); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, filepath.Join(dir, "t", b.name(), "test"),
			"-test.run", "^$", "-test.bench", b.Bench, "-test.benchtime", benchTime)
		cmd.Stdout, cmd.Stderr = console, console
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", b.Package, err)
		}
	}
	_, err = fmt.Fprintln(console, "@@end")
	return err
}
