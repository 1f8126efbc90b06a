package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// bench is the state of a run.
type bench struct {
	options
	table   table
	kernel  *bare
	started time.Time
	report  report
}

// measureAll runs in the namespaces made for it, from a small table to the
// largest, and writes the report.
func measureAll(ctx context.Context, o options) error {
	b := &bench{options: o, started: time.Now()}
	if err := furnish(); err != nil {
		return err
	}
	var err error
	if b.kernel, err = newBare(); err != nil {
		return err
	}
	defer b.kernel.close()
	b.report.Machine, b.report.Date, b.report.LoadAt = machine(), b.started.UTC().Format("2006-01-02 15:04 UTC"), load()
	b.report.Command = fmt.Sprintf("go run ./internal/test/bench -sockets %d -processes %d -descriptors %d -turn %v -turns %d -tomcat-turns %d",
		o.Sockets, o.Holders, o.Files, o.Turn, o.Turns, o.Tomcat)
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"memory with ten sockets", b.smallMemory},
		{"processor time with 1,000 sockets", b.processorTime},
		{"cost by listeners", b.byListeners},
		{"cost by namespaces", b.byNamespaces},
		{"cost by sockets", b.bySockets},
		{"sample", b.sample},
		{"scan", b.scan},
		{"many namespaces and many sockets", b.manyOfBoth},
		{"one-shot commands", b.commands},
		{"start", b.start},
		{"a long-running agent", b.longRunning},
		{"Tomcat", b.tomcat},
	} {
		fmt.Printf("%5.0f s  %s\n", time.Since(b.started).Seconds(), step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	b.report.Took, b.report.LoadAfter = time.Since(b.started), load()
	return b.write()
}

func (b *bench) write() error {
	if err := os.MkdirAll(b.Out, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.Out, "scaling.svg"), []byte(b.report.plot()), 0o644); err != nil {
		return err
	}
	path := filepath.Join(b.Out, "bench.md")
	fmt.Println("wrote", path)
	fmt.Print(b.report.budgets())
	return os.WriteFile(path, []byte(b.report.markdown()), 0o644)
}

// load is the machine's load average: other work makes the times longer, and
// the ratios, taken by turns, less exact.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil || len(content) < 4 {
		return "unknown"
	}
	var one string
	_, _ = fmt.Sscan(string(content), &one)
	return one
}
