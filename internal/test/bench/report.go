package main

import (
	"fmt"
	"strings"
	"time"
)

// row is one budget and what was measured.
type row struct {
	What, Budget string
	Limit, Ours  string // absolute, of this machine
	Ratio, Note  string
	Met          bool
	Unsure       bool // missed by less than the measurement can distinguish
}

// verdict is what the table says of a budget.
func (r row) verdict() string {
	switch {
	case r.Budget == "" || r.Budget == reported:
		return ""
	case r.Met:
		return "met"
	case r.Unsure:
		return "within the noise"
	}
	return "**missed**"
}

// reported stands where nothing was promised.
const reported = "reported"

// point is one size of a scaling table.
type point struct {
	N            int
	Sample, Scan time.Duration
	Bare         []time.Duration // exact request, LISTEN dump, walk without a match, walk with the matches
}

// report is everything that RESULTS.md shows.
type report struct {
	Machine   [][2]string
	Command   string
	Date      string
	LoadAt    string
	LoadAfter string
	Took      time.Duration

	Rows         []row
	Others       [][2]string
	BySockets    []point
	ByListeners  []point
	ByNamespaces []point // with few sockets
	ByBoth       []point // with the full table
	ByOwnTables  []point // likewise, each namespace with a table of its own
}

func (r *report) add(rows ...row) { r.Rows = append(r.Rows, rows...) }

func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	fmt.Fprintf(&b, "## Machine\n\n| | |\n|---|---|\n")
	for _, m := range r.Machine {
		fmt.Fprintf(&b, "| %s | %s |\n", m[0], m[1])
	}
	fmt.Fprintf(&b, "| when | %s, %.0f s, load average %s at the start and %s at the end |\n\n", r.Date, r.Took.Seconds(), r.LoadAt, r.LoadAfter)
	fmt.Fprintf(&b, "To repeat it, as root: `make prove PROOF=bench` (here: `%s`).\n\n", r.Command)
	b.WriteString("## Budgets\n\n")
	b.WriteString(r.budgets())
	b.WriteString(comparison)
	for _, o := range r.Others {
		fmt.Fprintf(&b, "| %s | %s |\n", o[0], o[1])
	}
	b.WriteString(r.scaling())
	return b.String()
}

func (r *report) budgets() string {
	var b strings.Builder
	b.WriteString("| what | budget | limit here | tcpdiag here | ratio | | |\n|---|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", row.What, row.Budget, row.Limit, row.Ours, row.Ratio, row.verdict(), row.Note)
	}
	return b.String()
}

const intro = `# What tcpdiag costs

Written by ` + "`make prove PROOF=bench`" + `. Absolute times are of one machine; the ratios count. Each thing and the limit it is held against ran by turns in one run, in a network namespace of its own, and the ratio is the median over the turns, so that other work on the machine meets both. The limits are bare loops of system calls on the same sockets whose replies are thrown away undecoded: what the kernel itself takes.

`

const comparison = `
For comparison, whole processes and bare dumps on the same table:

| | |
|---|---|
`
