package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// advised is a line of the table: one thing that an advice says, and what came of it.
type advised struct {
	Finding, Load, Advice, Did string
	Before, Verdict            string
	After, Then                string
	Result, Wrong              string
}

// judge says whether following the advice did what it says.
func (a *advised) judge(t try, before, after trial) {
	better := improved(before.Outcomes, after.Outcomes)
	if t.after != "" {
		better = after.cause == strings.TrimPrefix(t.after, "no cause")
	}
	switch {
	case better && !t.vain:
		a.Result = "helps"
	case !better && t.vain:
		a.Result = "does not help, as it says"
	case better:
		a.Wrong = "helps, and the advice says that it would not"
	default:
		a.Wrong = "does not help"
	}
}

// improved: at most half as many are lost, or a third more are served; or as many, and
// they wait a third less, and 100 ms.
func improved(before, after demo.Outcomes) bool {
	const hardly = 3 // requests
	was, is := lostShare(before), lostShare(after)
	return before.Lost() >= hardly && is <= was/2 ||
		3*after.Of(demo.OK) >= 4*before.Of(demo.OK) && after.Of(demo.OK) > 0 ||
		is <= was && after.Of(demo.OK) > 0 && after.Percentile(.95) <= min(before.Percentile(.95)*2/3, before.Percentile(.95)-100*time.Millisecond)
}

func lostShare(o demo.Outcomes) float64 {
	ended := o.Lost() + o.Of(demo.OK)
	return float64(o.Lost()) / float64(max(ended, 1))
}

func (a advised) String() string {
	result := a.Result
	if a.Wrong != "" {
		result = "**wrong**: " + a.Wrong
	}
	cells := []string{a.Finding, a.Load, a.Advice, a.Did, joinVerdict(a.Before, a.Verdict), joinVerdict(a.After, a.Then), result}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.ReplaceAll(c, "|", `\|`), "\n", " ")
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

func joinVerdict(outcomes, verdict string) string {
	if verdict == "" {
		return outcomes
	}
	return outcomes + "; " + verdict
}

const adviceHeading = `# The advice, followed

Written by ` + "`make advice`" + `: each finding that advises something, on a real Tomcat that has the
trouble. What the advice says is read from the snapshot's JSON, done to that server (started again with
the value that is advised, or while it runs), and the same load comes again. "Helps" is: at most half
as many requests are lost, or a third more are served, or they wait a third less (and 100 ms). What the advice says would not help is tried as well.

The advice of ` + "`connection_pool`" + ` (a larger pool helps, more threads do not) is followed by
` + "`make waits`" + ` on HikariCP and PostgreSQL: see waits.md.

The rows are of several runs, put together, on a machine of two CPUs that had other work as well.

| finding | load | advice | done | before | after | so it |
|---|---|---|---|---|---|---|
`

// readLines are the table's lines by their load.
func readLines(table string) map[string][]string {
	lines := make(map[string][]string)
	text, _ := os.ReadFile(table)
	for line := range strings.Lines(string(text)) {
		if cells := strings.SplitN(line, " | ", 3); len(cells) == 3 {
			lines[cells[1]] = append(lines[cells[1]], strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

func writeAdvice(table string, lines map[string][]string) error {
	var text strings.Builder
	text.WriteString(adviceHeading)
	for _, r := range remedies() {
		for _, line := range lines[r.load] {
			fmt.Fprintln(&text, line)
		}
	}
	for i, r := range notRun(lines) {
		if i == 0 {
			text.WriteString("\nWithout a row:\n\n")
		}
		why := r.unrun
		if why == "" {
			why = "no run of it has ended with one"
		}
		fmt.Fprintf(&text, "* `%s`: %s: %s\n", r.finding, r.load, why)
	}
	return os.WriteFile(table, []byte(text.String()), 0o600)
}

func notRun(lines map[string][]string) (out []remedy) {
	for _, r := range remedies() {
		if len(lines[r.load]) == 0 {
			out = append(out, r)
		}
	}
	return out
}

// seconds is how long the load of a remedy lasts: two for it to come, two for the
// snapshot, and what the machine takes.
const seconds = 7 * time.Second
