package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

func main() {
	os.Exit(run())
}

// run answers the exit code: 1 when a scenario did not go as it should, 2 when
// the lab itself could not.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	agree := true
	var err error
	if scenario := os.Getenv(insideEnv); scenario != "" {
		err = inside(ctx, scenario)
	} else {
		agree, err = lab(ctx, os.Args[1:])
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 2
	case !agree:
		return 1
	}
	return 0
}

// lab runs the scenarios one after the other; agree is false when one of them
// did not go as it should.
func lab(ctx context.Context, args []string) (agree bool, err error) {
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	pick := flags.String("run", "", "only the scenarios whose name matches this regular expression")
	list := flags.Bool("list", false, "list the scenarios and end")
	results := flags.String("results", "", "Markdown copy of the table; - for none; default docs/results/lab.md when all scenarios run, else none")
	update := flags.Bool("update", false, "replace the rows of the scenarios that -run picks in docs/results/lab.md")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	chosen, err := choose(*pick)
	if err != nil {
		return false, err
	}
	if *list {
		for _, s := range chosen {
			fmt.Printf("%-12s %s\n", s.name, s.load)
		}
		return true, nil
	}
	if os.Geteuid() != 0 {
		return false, errors.New("network namespaces need root")
	}
	dir, err := os.MkdirTemp("", "tcpdiag-lab-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	rows, about, err := runAll(ctx, dir, chosen)
	if len(rows) == 0 {
		return false, err
	}
	printTable(os.Stdout, rows)
	if err == nil {
		err = record(resultsPath(*results, *pick, *update), *update, about, rows)
	}
	for _, r := range rows {
		if !r.agrees() {
			return false, err
		}
	}
	return true, err
}

func choose(pick string) ([]scenario, error) {
	match, err := regexp.Compile(pick)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	var chosen []scenario
	for _, s := range scenarios() {
		if match.MatchString(s.name) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no scenario matches %q; see -list", pick)
	}
	return chosen, nil
}

// record writes the Markdown copy, or the rows of a copy that is there.
func record(path string, update bool, about environment, rows []row) error {
	if path == "" {
		return nil
	}
	text := markdown(about, rows)
	if update {
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text = replaceRows(old, about, rows)
	}
	return os.WriteFile(path, text, 0o644)
}

func resultsPath(given, pick string, update bool) string {
	switch {
	case given == "-", given == "" && pick != "" && !update:
		return ""
	case given != "":
		return given
	}
	return filepath.Join("docs", "results", "lab.md")
}

func runAll(ctx context.Context, dir string, chosen []scenario) (rows []row, about environment, err error) {
	fmt.Println("building (the first time takes minutes) …")
	var k kit
	if k.Artifacts, err = rig.Build(ctx, dir); err != nil {
		return nil, about, err
	}
	if k.Tools, err = fetchTools(ctx, chosen); err != nil {
		return nil, about, err
	}
	about = describe(ctx, k)
	for i, s := range chosen {
		fmt.Printf("[%d/%d] %s: %s\n", i+1, len(chosen), s.name, s.load)
		start := time.Now()
		r := outside(ctx, k, filepath.Join(dir, s.name), s)
		r.Name, r.Load, r.Seconds = s.name, s.load, time.Since(start).Seconds()
		printRow(os.Stdout, r)
		rows = append(rows, r)
		if ctx.Err() != nil {
			return rows, about, ctx.Err()
		}
	}
	about.Ended = time.Now()
	return rows, about, nil
}
