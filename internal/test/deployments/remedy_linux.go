package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// remedy is a case whose advice is followed: the same load on the same server before
// and after.
type remedy struct {
	finding string // the code of the finding that has the advice
	load    string // in words
	world   world
	press   pressure
	tries   []try
	unrun   string // why it cannot be shown here: it has no row then
}

// world is what the server is started with, and in.
type world struct {
	embedded bool     // the program of its own, not the Spring Boot application
	settings []string // name=value
	options  options
	sysctl   map[string]string
	started  func(*bench, *server) // after the start, before the load
	flags    []string              // of tcpdiag
	viewer   *syscall.Credential   // who runs tcpdiag
}

// pressure is the load: it ends by itself.
type pressure func(*bench, *server) demo.Outcomes

// try is one thing that the advice says.
type try struct {
	says  string // what the advice matches; its groups are the values to set
	did   string // in words; %s are the groups
	apply func(*world, []string)
	act   func(*bench, *server, []string) // on the running server; without it the server is started again
	press pressure                        // nil is the remedy's
	vain  bool                            // the advice says that this would not help
	after string                          // the verdict's cause afterwards, where it is not the loss that has to change
}

// with is the same with other values of some settings.
func (w world) with(settings ...string) world {
	w.settings = slices.Clone(w.settings)
	for _, s := range settings {
		name, _, _ := strings.Cut(s, "=")
		w.settings = slices.DeleteFunc(w.settings, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		w.settings = append(w.settings, s)
	}
	return w
}

// trial is what came of one run.
type trial struct {
	demo.Outcomes
	verdict, cause string
}

func (t trial) String() string { return t.Outcomes.String() }

// follow runs a remedy before and after, and adds a line for each thing tried.
func (b *bench) follow(r remedy) []advised {
	defer b.setSysctl(r.world.sysctl)()
	s := b.serve(r.world)
	before, advice := b.press(s, r.world, r.press, r.finding)
	if advice == "" {
		return []advised{{Finding: r.finding, Load: r.load, Before: before.String(), Verdict: before.verdict, Wrong: "there is no such finding"}}
	}
	var lines []advised
	for _, t := range r.tries {
		line := advised{Finding: r.finding, Load: r.load, Advice: advice, Before: before.String(), Verdict: before.verdict}
		b.attempt(r, t, s, before, &line)
		lines = append(lines, line)
	}
	return lines
}

// attempt follows one part of the advice.
func (b *bench) attempt(r remedy, t try, s *server, before trial, line *advised) {
	groups := regexp.MustCompile(t.says).FindStringSubmatch(line.Advice)
	if groups == nil {
		line.Wrong = fmt.Sprintf("the advice does not say %q", t.says)
		return
	}
	line.Did = described(t.did, groups[1:])
	world, press := r.world, r.press
	world.sysctl = maps.Clone(world.sysctl)
	if t.apply != nil {
		t.apply(&world, groups)
	}
	if t.press != nil {
		press = t.press
	}
	if t.act == nil {
		b.unwind()
		undo := b.setSysctl(world.sysctl)
		defer undo()
		s = b.serve(world)
	} else {
		t.act(b, s, groups)
	}
	after, _ := b.press(s, world, press, "")
	line.After, line.Then = after.String(), after.verdict
	line.judge(t, before, after)
}

func described(did string, groups []string) string {
	args := make([]any, 0, len(groups))
	for _, g := range groups[:min(len(groups), strings.Count(did, "%s"))] {
		args = append(args, g)
	}
	return fmt.Sprintf(did, args...)
}

// press loads the server, and asks tcpdiag meanwhile.
func (b *bench) press(s *server, w world, press pressure, finding string) (t trial, advice string) {
	done := make(chan demo.Outcomes, 1)
	go func() { done <- press(b, s) }()
	flags := w.flags
	if !slices.Contains(flags, "--interval") {
		flags = append([]string{"--interval", "2s"}, flags...)
	}
	b.viewer = w.viewer
	said := b.ask(port, flags...)
	t.Outcomes = <-done
	b.must(t.LocalError)
	if said.listener == nil {
		return t, ""
	}
	v := said.listener.Verdict
	t.verdict, t.cause = strings.TrimSpace(v.Status+" "+v.Cause), v.Cause
	for _, f := range v.Findings {
		if f.Code == finding {
			return t, f.Advice
		}
	}
	return t, ""
}

// serve starts the server and has it compile what a request needs.
func (b *bench) serve(w world) *server {
	_ = os.Remove(filepath.Join(b.dir, "truth.json"))
	for i, setting := range w.settings {
		w.settings[i] = strings.ReplaceAll(setting, "KEYSTORE", b.Keystore)
	}
	var s *server
	if w.embedded {
		s = b.embedded(w.options, append([]string{"protocol=HTTP/1.1"}, w.settings...)...)
	} else {
		s = b.boot("none", w.options, w.settings...)
	}
	b.until("the server listens", func() bool {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid)); err != nil || strings.Contains(string(stat), ") Z ") {
			b.must(errors.New("the server has ended"))
		}
		return s.says(0).LocalPort > 0 || b.connects(port)
	})
	if b.connects(port) {
		b.warm(fmt.Sprintf("127.0.0.1:%d", port), w)
	}
	if w.started != nil {
		w.started(b, s)
	}
	return s
}

// unwind ends what the case has started.
func (b *bench) unwind() {
	for len(b.cleanup) > 0 {
		last := len(b.cleanup) - 1
		b.cleanup[last]()
		b.cleanup = b.cleanup[:last]
	}
}

// setSysctl sets what is the network namespace's, and returns what sets it back.
func (b *bench) setSysctl(values map[string]string) (undo func()) {
	before := make(map[string]string)
	for name, value := range values {
		path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
		old, err := os.ReadFile(path)
		b.must(err)
		before[path] = string(old)
		b.must(os.WriteFile(path, []byte(value), 0o600))
	}
	return func() {
		for path, old := range before {
			_ = os.WriteFile(path, []byte(old), 0o600)
		}
	}
}

// advice runs the remedies of a name and writes their table.
func advice(ctx context.Context, k *kit, only *regexp.Regexp, table string) error {
	lines, failed := readLines(table), 0
	for _, r := range remedies() {
		if r.unrun != "" || !only.MatchString(r.finding) && !only.MatchString(r.load) {
			continue
		}
		lines[r.load] = nil
		for _, line := range runRemedy(ctx, k, r) {
			fmt.Println(line)
			lines[r.load] = append(lines[r.load], line.String())
			if line.Wrong != "" {
				failed++
			}
		}
		if err := writeAdvice(table, lines); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d are not as the advice says", failed)
	}
	return nil
}

func runRemedy(ctx context.Context, k *kit, r remedy) (lines []advised) {
	dir, err := os.MkdirTemp(k.Dir, "remedy-")
	b := &bench{kit: k, ctx: ctx, dir: dir, nextPort: new(atomic.Int64)}
	defer func() {
		b.unwind()
		var f failure
		if e, ok := recover().(error); ok && errors.As(e, &f) {
			lines = append(lines, advised{Finding: r.finding, Load: r.load, Wrong: "not run to its end: " + f.Error() + tail(filepath.Join(dir, "server.log"))})
		}
	}()
	b.must(err)
	return b.follow(r)
}
