package main

import (
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// The budgets of a node agent.
const (
	ageBudget     = time.Second
	losingBudget  = time.Second
	causeBudget   = 2 * time.Second
	calmBudget    = 0.025
	troubleBudget = 0.10
	memoryBudget  = 40 << 20
)

// troubleRows are what happened to the servers in trouble, the worst of them.
func troubleRows(scenario, what string, patients []*patient, share float64) []row {
	worst := *patients[0]
	for _, p := range patients[1:] {
		worst.dropsAge, worst.queueAge = max(worst.dropsAge, p.dropsAge), max(worst.queueAge, p.queueAge)
		worst.losing, worst.cause = later(worst.losing, p.losing), later(worst.cause, p.cause)
		if worst.wrong == "" {
			worst.wrong = p.wrong
		}
	}
	note := ""
	if worst.wrong != "" {
		note = "first said " + worst.wrong
	}
	return []row{
		{Scenario: scenario, What: what + ": age of the drops in /metrics", Budget: "≤ 1 s", Ours: seconds(worst.dropsAge), Met: worst.dropsAge <= ageBudget},
		{Scenario: scenario, What: what + ": age of the queue in /metrics", Budget: "≤ 1 s", Ours: seconds(worst.queueAge), Met: worst.queueAge <= ageBudget},
		delayRow(scenario, what+": losing after the first drop", worst.losing, losingBudget, ""),
		delayRow(scenario, what+": "+rightCause+" after the first drop", worst.cause, causeBudget, note),
		{Scenario: scenario, What: what + ": share of a core over ten seconds of it", Budget: "≤ 10 %", Ours: percent(share), Met: share <= troubleBudget},
	}
}

// later is the longer delay; never (negative) is the longest.
func later(a, b time.Duration) time.Duration {
	if a < 0 || b < 0 {
		return -1
	}
	return max(a, b)
}

func delayRow(scenario, what string, delay, budget time.Duration, note string) row {
	r := row{Scenario: scenario, What: what, Budget: fmt.Sprintf("≤ %.0f s", budget.Seconds()), Note: note}
	if delay < 0 {
		r.Ours = fmt.Sprintf("not within %.0f s", troubleFor.Seconds())
		return r
	}
	r.Ours, r.Met = seconds(delay), delay <= budget
	return r
}

func calmRow(scenario, what string, share float64) row {
	return row{Scenario: scenario, What: what, Budget: "≤ 2.5 %", Ours: percent(share), Met: share <= calmBudget}
}

// startRow is what reading all for the first time takes.
func startRow(scenario string, c calmness) row {
	return row{Scenario: scenario, What: fmt.Sprintf("the start and %.0f s after it: CPU time", settling.Seconds()), Budget: reported, Ours: seconds(c.before)}
}

// oldestRow is of what calm servers' connections may be read for what is left of the
// share of a core.
func oldestRow(scenario string, oldest time.Duration) row {
	return row{Scenario: scenario, What: "calm: the oldest reading of a server's connections at the end", Budget: reported, Ours: seconds(oldest), Note: "30 s is the goal"}
}

func memoryRow(scenario string, agent *rig.Agent) (row, error) {
	now, highest, err := rig.Resident(agent.Process.Pid)
	return row{
		Scenario: scenario, What: "resident memory, the most", Budget: "≤ 40 MiB",
		Ours: mebibytes(highest), Met: highest <= memoryBudget, Note: mebibytes(now) + " at the end",
	}, err
}

// reportedRow promises nothing.
func reportedRow(scenario, what string, delay time.Duration) row {
	r := delayRow(scenario, what, delay, 0, "")
	r.Budget = reported
	return r
}
