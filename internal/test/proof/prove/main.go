// Command prove runs a proof by its name, and says which ones are behind.
//
//	prove [-only CASES] [-args ARGS] NAME…    looks for what it needs, runs it, writes down when
//	prove -list                  the table of CONTRIBUTING.md
//	prove -stale                 those whose files have changed since their last whole run; draws the list of all runs
//	prove -needs PROGRAM:PACKAGE…
//
// The last whole run of each is in docs/results/runs/NAME: its day, commit, minutes and
// outcome, with how many of its tests were skipped, as where the kernel lacks something. docs/results/README.md has them all in a table, drawn from these.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("only", "", "only the cases of that name (a regular expression); the run is not written down")
	more := flag.String("args", "", "more arguments for its command; the run is not written down")
	list := flag.Bool("list", false, "the proofs")
	stale := flag.Bool("stale", false, "those behind which files they cover have changed")
	needs := flag.Bool("needs", false, "looks for PROGRAM:PACKAGE…, and installs what is missing where it may")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case *list:
		fmt.Print(proof.Table())
	case *stale:
		sayStale(ctx)
		return draw(".")
	case *needs:
		var wanted []proof.Need
		for _, arg := range flag.Args() {
			program, pkg, _ := strings.Cut(arg, ":")
			wanted = append(wanted, proof.Need{Program: program, Package: pkg})
		}
		return provide(ctx, wanted)
	default:
		return proveAll(ctx, flag.Args(), *only, strings.Fields(*more))
	}
	return nil
}

func proveAll(ctx context.Context, names []string, only string, more []string) error {
	if len(names) == 0 {
		return errors.New("which? PROOF=NAME; -list has their names")
	}
	var chosen []proof.Proof
	for _, name := range names {
		i := slices.IndexFunc(proof.All(), func(p proof.Proof) bool { return p.Name == name })
		if i < 0 {
			return fmt.Errorf("no proof is called %q; -list has their names", name)
		}
		chosen = append(chosen, proof.All()[i])
	}
	var errs []error
	for _, p := range chosen {
		errs = append(errs, prove(ctx, p, only, more))
	}
	return errors.Join(errs...)
}

// prove runs one, and writes it down where it was whole.
func prove(ctx context.Context, p proof.Proof, only string, more []string) error {
	if p.Root && os.Geteuid() != 0 {
		return fmt.Errorf("%s needs root: it makes namespaces", p.Name)
	}
	if err := provide(ctx, p.Needs); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	line, err := command(p, only)
	if err != nil {
		return err
	}
	line = append(line, more...)
	fmt.Printf("%s: %s, about %d minutes\n  %s\n", p.Name, p.What, p.Minutes, strings.Join(line, " "))
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var skipped skips
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Dir, io.MultiWriter(os.Stdout, &skipped), os.Stderr
	cmd.Env = append(os.Environ(), "TCPDIAG_TESTS=full")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	commit, began := head(ctx), time.Now()
	failed := cmd.Run()
	if only == "" && len(more) == 0 && ctx.Err() == nil {
		err = record(p, commit, began, failed, skipped.n)
	}
	if failed != nil {
		failed = fmt.Errorf("%s: %w", p.Name, failed)
	}
	return errors.Join(failed, err)
}

// command is the proof's, for some of its cases where only says so.
func command(p proof.Proof, only string) ([]string, error) {
	line := slices.Clone(p.Run)
	if only == "" {
		return line, nil
	}
	i := slices.Index(line, p.Select)
	switch {
	case p.Select == "":
		return nil, fmt.Errorf("%s has no cases to choose from", p.Name)
	case i < 0:
		return append(line, p.Select, only), nil
	case strings.HasSuffix(line[i+1], "/"):
		line[i+1] += only
	default:
		line[i+1] = only
	}
	return line, nil
}

func record(p proof.Proof, commit string, began time.Time, failed error, skipped int) error {
	outcome := "passed"
	if failed != nil {
		outcome = "failed"
	}
	if skipped > 0 {
		outcome += ", skipped of its tests: " + strconv.Itoa(skipped)
	}
	s := stamp{began.UTC().Format("2006-01-02"), commit, minutes(time.Since(began)), outcome}
	if err := os.MkdirAll(runs, 0o755); err != nil { //nolint:gosec // docs
		return err
	}
	if err := os.WriteFile(filepath.Join(runs, p.Name), []byte(s.String()+"\n"), 0o644); err != nil { //nolint:gosec // docs
		return err
	}
	return draw(".")
}

// minutes are whole ones, but of a short run.
func minutes(d time.Duration) string {
	const short = 5
	if d.Minutes() < short {
		return fmt.Sprintf("%.1f", d.Minutes())
	}
	return fmt.Sprintf("%.0f", d.Minutes())
}

// skips counts the tests that say that they have been skipped, in what go test -v prints.
type skips struct {
	n    int
	line []byte // what of the last line has come
}

func (s *skips) Write(b []byte) (int, error) {
	for _, c := range b {
		if c != '\n' {
			s.line = append(s.line, c)
			continue
		}
		if bytes.HasPrefix(bytes.TrimLeft(s.line, " "), []byte("--- SKIP: ")) {
			s.n++
		}
		s.line = s.line[:0]
	}
	return len(b), nil
}

// head is the newest commit that changed anything but results, with + where files differ from it: a run
// whose results are committed and moved onto others' work is still of a commit that there is.
func head(ctx context.Context) string {
	commit := git(ctx, "log", "-1", "--abbrev=10", "--format=%h", "--", ".", ":!docs/results")
	if git(ctx, "status", "--porcelain", "--untracked-files=no") != "" {
		commit += "+"
	}
	return commit
}

func git(ctx context.Context, args ...string) string {
	out, _ := exec.CommandContext(ctx, "git", args...).Output()
	return strings.TrimSpace(string(out))
}

// sayStale prints a line for each proof.
func sayStale(ctx context.Context) {
	behind := 0
	for _, p := range proof.All() {
		s, found := last(".", p)
		if !found {
			behind++
			fmt.Printf("%-14s never run whole\n", p.Name)
			continue
		}
		changed, known := changedSince(ctx, strings.TrimSuffix(s.commit, "+"), p.Covers)
		if known && len(changed) == 0 {
			fmt.Printf("%-14s %s, and nothing has changed since\n", p.Name, s)
			continue
		}
		behind++
		if !known {
			fmt.Printf("%-14s %s; that commit is not in this history\n", p.Name, s)
			continue
		}
		fmt.Printf("%-14s %s; files changed since: %d (%s)\n", p.Name, s, len(changed), some(changed))
	}
	fmt.Printf("%d of %d are behind. One runs by its name: make prove PROOF=NAME\n", behind, len(proof.All()))
}

// changedSince are the files that a proof covers and that differ from a commit, but for
// pages; unknown where the commit is not in the history of what is checked out.
func changedSince(ctx context.Context, commit string, covers []string) (changed []string, known bool) {
	if exec.CommandContext(ctx, "git", "merge-base", "--is-ancestor", commit, "HEAD").Run() != nil {
		return nil, false
	}
	out := git(ctx, slices.Concat([]string{"diff", "--name-only", commit, "--"}, covers)...)
	for file := range strings.Lines(out) {
		if file = strings.TrimSpace(file); !strings.HasSuffix(file, ".md") {
			changed = append(changed, file)
		}
	}
	return changed, true
}

func some(files []string) string {
	const few = 3
	if len(files) <= few {
		return strings.Join(files, ", ")
	}
	return strings.Join(files[:few], ", ") + " …"
}

// provide looks for programs, and installs what is missing as root on Debian.
func provide(ctx context.Context, needs []proof.Need) error {
	var missing []string
	for _, n := range needs {
		if !there(n.Program) && !slices.Contains(missing, n.Package) {
			missing = append(missing, n.Package)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("missing: %s (as root on Debian they are installed)", strings.Join(missing, " "))
	}
	fmt.Println("installing:", strings.Join(missing, " "))
	if undo, err := quietServices(); err == nil {
		defer undo()
	}
	for _, args := range [][]string{{"update", "-qq"}, slices.Concat([]string{"install", "-y", "-qq", "--no-install-recommends"}, missing)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out)
		}
	}
	for _, n := range needs {
		if !there(n.Program) {
			return fmt.Errorf("missing: %s, although %s is installed", n.Program, n.Package)
		}
	}
	return nil
}

func there(program string) bool {
	if _, err := exec.LookPath(program); err == nil {
		return true
	}
	for _, dir := range []string{"/sbin", "/usr/sbin"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
			return true
		}
	}
	return false
}

// quietServices has no service start that a package brings.
func quietServices() (undo func(), err error) {
	const policy = "/usr/sbin/policy-rc.d"
	f, err := os.OpenFile(policy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // it is run
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString("#!/bin/sh\nexit 101\n")
	return func() { _ = os.Remove(policy) }, errors.Join(err, f.Close())
}
