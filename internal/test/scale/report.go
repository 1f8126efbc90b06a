package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// row is one budget and what was measured.
type row struct {
	Scenario, What, Budget, Ours, Note string
	Met                                bool
}

// reported stands where nothing was promised.
const reported = "reported"

func (r row) verdict() string {
	switch {
	case r.Budget == reported:
		return ""
	case r.Met:
		return "met"
	}
	return "**missed**"
}

// report is everything that RESULTS.md says.
type report struct {
	rows              []row
	started           time.Time
	took              time.Duration
	command           string
	loadAt, loadAfter string
}

func (r *report) add(rows ...row) {
	for _, row := range rows {
		fmt.Printf("   %s: %s (%s) %s %s\n", row.What, row.Ours, row.Budget, row.verdict(), row.Note)
	}
	r.rows = append(r.rows, rows...)
}

func (r *report) begin(o options) {
	r.started, r.loadAt = time.Now(), loadAverage()
	r.command = fmt.Sprintf("go run ./internal/test/scale -sockets %d -namespaces %d -ends %d -calm %v", o.Sockets, o.Namespaces, o.Ends, o.Calm)
	if o.Only != "" {
		r.command += " -only " + o.Only
	}
}

func (r *report) end() { r.took, r.loadAfter = time.Since(r.started), loadAverage() }

func (r *report) table() string {
	var b strings.Builder
	b.WriteString("| | what | budget | tcpdiag here | | |\n|---|---|---|---|---|---|\n")
	for _, row := range r.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", row.Scenario, row.What, row.Budget, row.Ours, row.verdict(), row.Note)
	}
	return b.String()
}

func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString(r.table())
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		kernel = []byte("unknown")
	}
	fmt.Fprintf(&b, "\n%d processors, Linux %s, %s, %s: %.0f s, load average %s at the start and %s at the end.\n", runtime.NumCPU(),
		strings.TrimSpace(string(kernel)), runtime.Version(), r.started.UTC().Format("2006-01-02 15:04 UTC"), r.took.Seconds(), r.loadAt, r.loadAfter)
	fmt.Fprintf(&b, "\nTo repeat it, as root: `make prove PROOF=scale` (here: `%s`).\n", r.command)
	return b.String()
}

func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(content), " ")
	return one
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func count(n int) string { return phrase.Number(n) }

const intro = `# What tcpdiag sees on large and busy hosts, and when

Written by ` + "`make prove PROOF=scale`" + `. Every situation was built on the real kernel, in namespaces of its own. Ages and delays are against the kernel's own counters, read beside the agent every 5 ms. The agent was scraped (/metrics and /api/v1/snapshot) every 15 s while it was calm (from 15 s after its start on), which is in the share of a core, and 10 times a second in trouble, which is not, as weighed before: those that are the first of their snapshot, and others, which are answered with what these have made. H3, a machine 20 times slower, is an emulated one: [kernels](kernels.md).

`
