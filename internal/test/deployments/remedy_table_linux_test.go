package deployments

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// advised is a line of the table: one thing that an advice says, and what came of it.
type advised struct {
	Finding, Load, Advice, Did string
	Before, Verdict            string
	After, Then                string
	Predicted                  string // what was said that it would do, "" where nothing was
	Result, Wrong              string
}

// holdEffect compares what was said of a change with what came of it.
func (a *advised) holdEffect(effect string, after trial) {
	if effect == "" {
		return
	}
	a.Predicted = effect
	share := 1 - lostShare(after.Outcomes)
	said, known := servedShare(effect)
	if a.Wrong == "" && (!known || math.Abs(said-share) > within) {
		a.Wrong = fmt.Sprintf("%.0f %% were answered, %.0f %% were said to be", 100*share, 100*said)
	}
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

// improved: at most half as many are lost, or a third more are served, who are one in twenty of all; or as many, and
// they wait a third less, and 100 ms.
func improved(before, after demo.Outcomes) bool {
	const hardly = 3 // requests
	was, is := lostShare(before), lostShare(after)
	return before.Lost() >= hardly && is <= was/2 ||
		3*after.Of(demo.OK) >= 4*before.Of(demo.OK) && 20*(after.Of(demo.OK)-before.Of(demo.OK)) >= after.Total() ||
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
	cells := []string{a.Finding, a.Load, a.Advice, a.Did, joinVerdict(a.Before, a.Verdict), a.Predicted, joinVerdict(a.After, a.Then), result}
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

Written by ` + "`make prove PROOF=advice`" + `: each finding that advises something, on a real Tomcat that has the
trouble. What the advice says is read from the snapshot's JSON, done to that server (started again with
the value that is advised, or while it runs), and the same load comes again. "Helps" is: at most half
as many requests are lost, or a third more are served (one in twenty of all), or they wait a third less (and 100 ms). What the advice says would not help is tried as well.

What the answer said that the step would do ("predicted") is held against what came of it, within 20 % of the clients. A load of
seven seconds is too short for a prediction where clients keep coming: those are in [predictions.md](predictions.md).

The advice of ` + "`connection_pool`" + ` (a larger pool helps, more threads do not) is followed by
` + "`make prove PROOF=waits`" + ` on HikariCP and PostgreSQL: see waits.md.

The rows are of several runs, put together, on a machine of two CPUs that had other work as well.

| finding | load | advice | done | before | predicted | after | so it |
|---|---|---|---|---|---|---|---|
`

// adviceTable are the table's lines by their load.
type adviceTable map[string][]string

const adviceFile = "docs/results/advice.md"

func readAdvice() adviceTable {
	t := make(adviceTable)
	for line := range strings.Lines(rig.Read(adviceFile)) {
		if cells := strings.SplitN(line, " | ", 3); len(cells) == 3 {
			t[cells[1]] = append(t[cells[1]], strings.TrimRight(line, "\n"))
		}
	}
	return t
}

// put replaces the lines of a load.
func (a adviceTable) put(t testing.TB, load string, lines []advised) {
	a[load] = nil
	for _, line := range lines {
		a[load] = append(a[load], line.String())
	}
	var text strings.Builder
	text.WriteString(adviceHeading)
	for _, r := range remedies() {
		if r.unrun != "" {
			a[r.load] = nil
		}
		for _, line := range a[r.load] {
			fmt.Fprintln(&text, line)
		}
	}
	for i, r := range notRun(a) {
		if i == 0 {
			text.WriteString("\nWithout a row:\n\n")
		}
		why := r.unrun
		if why == "" {
			why = "no run of it has ended with one"
		}
		fmt.Fprintf(&text, "* `%s`: %s: %s\n", r.finding, r.load, why)
	}
	rig.Record(t, adviceFile, text.String())
}

func notRun(lines adviceTable) (out []remedy) {
	for _, r := range remedies() {
		if len(lines[r.load]) == 0 {
			out = append(out, r)
		}
	}
	return out
}
