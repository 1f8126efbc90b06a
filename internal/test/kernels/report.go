package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// result is a guest's end.
type result struct {
	Guest string
	Slow  bool
	Log   guestLog
	Paths []string // of the logs
	// Missing are the boots that were not run yet, when not all were asked for.
	Missing []string
}

// bootLog is where a boot's console is.
type bootLog struct{ boot, path string }

// readResult reads the logs of a guest's boots, those that there are.
func readResult(name string, logs []bootLog, slow bool) (result, error) {
	r := result{Guest: name, Slow: slow}
	var all []io.Reader
	for _, l := range logs {
		path := l.path
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			r.Missing = append(r.Missing, l.boot)
			continue
		} else if err != nil {
			return r, err
		}
		r.Paths = append(r.Paths, path)
		all = append(all, bytes.NewReader(text), strings.NewReader("\n"))
	}
	if len(all) == 0 {
		return r, fmt.Errorf("%s: %w: no log", name, fs.ErrNotExist)
	}
	var err error
	r.Log, err = readLog(io.MultiReader(all...))
	return r, err
}

func (r result) ok() bool {
	failed := slices.ContainsFunc(r.Log.Runs, func(run run) bool { return !run.ok() })
	return r.Log.Ended && !failed && len(r.Log.Runs) > 0
}

// print writes what a person waits for: each binary's result, and what failed.
func (r result) print(w io.Writer) {
	fmt.Fprintf(w, "%s: up after %.1f s, done in %.0f s (%.0f s of a processor), log %s\n", r.Guest, r.Log.Boot, r.Log.Took, r.Log.Spent, strings.Join(r.Paths, ", "))
	for _, run := range r.Log.Runs {
		fmt.Fprintf(w, "  %-10s %s (%.1f s)\n", run.Name, outcome(run), run.Seconds)
		for _, f := range run.Failed {
			fmt.Fprintf(w, "             FAIL %s: %s\n", f.Name, f.Why)
		}
		for _, name := range run.Skipped {
			fmt.Fprintf(w, "             skip %s\n", name)
		}
	}
	for _, f := range r.Log.Features {
		fmt.Fprintf(w, "  %-44s %s\n", f.Name, f.Value)
	}
	if !r.Log.Ended {
		fmt.Fprintf(w, "  it did not reach its end\n")
	}
}

func outcome(r run) string {
	text := fmt.Sprintf("%d passed", r.Passed)
	if n := len(r.Failed); n > 0 {
		text += fmt.Sprintf(", **%d failed**", n)
	}
	if n := len(r.Skipped); n > 0 {
		text += fmt.Sprintf(", %d skipped", n)
	}
	switch {
	case r.Exit < 0:
		text += ", **ended with the guest**"
	case r.Exit != 0 && len(r.Failed) == 0:
		text += fmt.Sprintf(", **exit code %d**", r.Exit)
	}
	return text
}

//go:embed kernels.md
var introduction string

// document is docs/results/kernels.md; times are the lines of how long runs took.
func document(results []result, times string) string {
	var text strings.Builder
	text.WriteString(introduction)
	text.WriteString("\n## What each kernel has and does\n\n")
	table(&text, results, featureNames(results), func(r result, name string) string {
		i := slices.IndexFunc(r.Log.Features, func(f feature) bool { return f.Name == name })
		if i < 0 {
			return "–"
		}
		return r.Log.Features[i].Value
	})
	text.WriteString("\n## The tests\n\n")
	table(&text, results, runNames(results), func(r result, name string) string {
		i := slices.IndexFunc(r.Log.Runs, func(run run) bool { return run.Name == name })
		if i < 0 {
			return "–"
		}
		return outcome(r.Log.Runs[i])
	})
	row(&text, results, "wall time", func(g guestLog) float64 { return g.Took })
	row(&text, results, "of it processor time", func(g guestLog) float64 { return g.Spent })
	text.WriteString("\n")
	for _, r := range results {
		if r.Guest == here {
			continue
		}
		fmt.Fprintf(&text, "* %s: %s at commit %s, up after %.1f s of its clock%s\n",
			column(r), r.Log.Kernel, strings.Join(r.Log.Commits, " and "), r.Log.Boot, r.incomplete())
		for _, run := range r.Log.Runs {
			for _, f := range run.Failed {
				fmt.Fprintf(&text, "  * failed: %s %s: %s\n", run.Name, f.Name, cmp.Or(f.Why, "it printed no reason"))
			}
		}
	}
	if times != "" {
		text.WriteString("\nHow long runs of all their guests took:\n\n" + times)
	}
	return text.String()
}

// incomplete says what a column lacks.
func (r result) incomplete() (text string) {
	if len(r.Missing) > 0 {
		text = "; not run yet: " + strings.Join(r.Missing, ", ")
	}
	if !r.Log.Ended {
		text += "; **a boot did not reach its end**"
	}
	return text
}

// row is a number of seconds for each guest.
func row(w io.Writer, results []result, name string, seconds func(guestLog) float64) {
	fmt.Fprintf(w, "| %s |", name)
	for _, r := range results {
		if r.Guest == here {
			fmt.Fprint(w, " – |")
			continue
		}
		fmt.Fprintf(w, " %.0f s |", seconds(r.Log))
	}
	fmt.Fprintln(w)
}

func table(w io.Writer, results []result, rows []string, cell func(result, string) string) {
	head, rule := "|  |", "|---|"
	for _, r := range results {
		head += " " + column(r) + " |"
		rule += "---|"
	}
	fmt.Fprintf(w, "%s\n%s\n", head, rule)
	for _, row := range rows {
		fmt.Fprintf(w, "| %s |", row)
		for _, r := range results {
			fmt.Fprintf(w, " %s |", cell(r, row))
		}
		fmt.Fprintln(w)
	}
}

// column is "6.12.107", "6.12.107 arm64", "7.3.4 slow", "6.18.2, not emulated".
func column(r result) string {
	if r.Guest == here {
		name, _, _ := strings.Cut(r.Log.Kernel, "-")
		return name + ", not emulated"
	}
	name, _, _ := strings.Cut(strings.ReplaceAll(r.Guest, "+", "-"), "-")
	if r.Log.Machine == "aarch64" {
		name += " arm64"
	}
	if r.Slow {
		name += " slow"
	}
	return name
}

// featureNames are in the order in which the guests reported them.
func featureNames(results []result) []string {
	var names []string
	for _, r := range results {
		for _, f := range r.Log.Features {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

func runNames(results []result) []string {
	var names []string
	for _, r := range results {
		for _, run := range r.Log.Runs {
			if !slices.Contains(names, run.Name) {
				names = append(names, run.Name)
			}
		}
	}
	return names
}
