package main

import (
	"bufio"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// feature is one thing that a kernel has, does or lacks, as the guest saw it.
type feature struct {
	Name, Value string
}

// run is one test binary's.
type run struct {
	Name    string
	Passed  int
	Failed  []failure
	Skipped []string
	Exit    int // the process's, -1 if the guest ended before it
	Seconds float64
}

func (r run) ok() bool { return r.Exit == 0 && len(r.Failed) == 0 && r.Passed > 0 }

// failure is a test that failed.
type failure struct {
	Name string
	Why  string // the last assertion that did not hold, "" if none was printed
}

// guestLog is what a guest printed.
type guestLog struct {
	Kernel, Machine string
	Boot            float64  // seconds of the guest until its first process
	Took            float64  // seconds of the host, all boots
	Spent           float64  // of them those of its processors
	Commits         []string // of this repository, each once
	Features        []feature
	Runs            []run
	Ended           bool // all boots reached their end: the kernel did not panic or hang
	cut             bool // a boot before the last one did not
	why             complaint
}

var (
	// testLine is the outcome of a test, not of a part of one.
	testLine = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+)`)
	// ratioLine is a benchmark that compares with bare system calls.
	ratioLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s.*\s([\d.]+) x-bare`)
	// mark may follow what the firmware or a test left on its line.
	mark = regexp.MustCompile(`@@(boot|run|exit|feature|end|took|commit)\b ?(.*)$`)
)

// readLog reads a guest's console.
//
//	@@boot SECONDS RELEASE MACHINE
//	@@run NAME
//	--- PASS: TestX (0.00s)            the test binary's own
//	BenchmarkX-2  100  1.02 x-bare …   the same
//	@@feature NAME<TAB>VALUE
//	@@exit CODE SECONDS
//	@@end
//	@@took SECONDS CPU                 the host's
//	@@commit HASH                      the same
func readLog(console io.Reader) (guestLog, error) {
	var g guestLog
	lines := bufio.NewScanner(console)
	lines.Buffer(nil, 1<<20)
	last := 0.0
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		if m := mark.FindStringSubmatch(line); m != nil {
			last = g.marked(m[1], m[2], last)
		} else if m := testLine.FindStringSubmatch(line); m != nil && len(g.Runs) > 0 {
			g.Runs[len(g.Runs)-1].test(m[1], m[2], g.why.text())
			g.why = complaint{}
		} else if m := ratioLine.FindStringSubmatch(line); m != nil {
			g.Features = append(g.Features, feature{m[1] + " against bare calls", "× " + m[2]})
		} else {
			g.why.read(line)
		}
	}
	return g, lines.Err()
}

// marked takes a line of the guest's own; last is its time at the line before.
func (g *guestLog) marked(kind, rest string, last float64) (now float64) {
	fields := strings.Fields(rest)
	switch {
	case kind == "boot" && len(fields) == 3:
		now, _ = strconv.ParseFloat(fields[0], 64)
		if g.Boot == 0 {
			g.Boot = now
		}
		g.cut = g.cut || g.Kernel != "" && !g.Ended
		g.Kernel, g.Machine, g.Ended = fields[1], fields[2], false
		return now
	case kind == "run" && len(fields) == 1:
		g.begin(fields[0])
	case kind == "feature":
		if name, value, ok := strings.Cut(rest, "\t"); ok {
			g.Features = append(g.Features, feature{name, value})
		}
	case kind == "exit" && len(fields) == 2 && len(g.Runs) > 0:
		r := &g.Runs[len(g.Runs)-1]
		if code, err := strconv.Atoi(fields[0]); err == nil && r.Exit <= 0 {
			r.Exit = code
		}
		now, _ = strconv.ParseFloat(fields[1], 64)
		r.Seconds += now - last
		return now
	case kind == "took" && len(fields) == 2:
		took, _ := strconv.ParseFloat(fields[0], 64)
		spent, _ := strconv.ParseFloat(fields[1], 64)
		g.Took, g.Spent = g.Took+took, g.Spent+spent
	case kind == "commit" && len(fields) == 1 && !slices.Contains(g.Commits, fields[0]):
		g.Commits = append(g.Commits, fields[0])
	case kind == "end":
		g.Ended = !g.cut
	}
	return last
}

// begin makes a binary the last run: a guest's second boot continues with one of
// the first.
func (g *guestLog) begin(name string) {
	next := run{Name: name}
	if i := slices.IndexFunc(g.Runs, func(r run) bool { return r.Name == name }); i >= 0 {
		next = g.Runs[i]
		g.Runs = slices.Delete(g.Runs, i, i+1)
	}
	if next.Exit == 0 {
		next.Exit = -1
	}
	g.Runs = append(g.Runs, next)
}

func (r *run) test(outcome, name, why string) {
	switch outcome {
	case "PASS":
		r.Passed++
	case "FAIL":
		r.Failed = append(r.Failed, failure{name, why})
	case "SKIP":
		r.Skipped = append(r.Skipped, name)
	}
}
