package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
)

// environment is where the results were measured.
type environment struct {
	Began, Ended time.Time
	Kernel       string
	CPU          string
	Cores        int
	Versions     []string // "k6 v1.8.1"
	LoadBefore   string   // of the machine, by others
}

// printRow prints a scenario that has just ended.
func printRow(w io.Writer, r row) {
	for _, part := range []struct{ name, text string }{
		{"clients", r.Clients}, {"tcpdiag", r.Said}, {"plan", r.Plan},
	} {
		if part.text != "" {
			fmt.Fprintf(w, "    %-8s %s\n", part.name, plain(part.text))
		}
	}
	fmt.Fprintf(w, "    %-8s %s, %.0f s\n", "agree", agreement(r), r.Seconds)
}

// printTable is the short form for a terminal.
func printTable(w io.Writer, rows []row) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SCENARIO\tCLIENTS\tTCPDIAG\tPLAN\tAGREE")
	for _, r := range rows {
		agree := "yes"
		if !r.agrees() {
			agree = "NO"
		}
		verdict, _, _ := strings.Cut(plain(r.Said), ", ")
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Name, first(r.Clients), verdict, first(r.Plan), agree)
	}
	_ = t.Flush()
	fmt.Fprintln(w, tally(rows))
}

func first(s string) string {
	head, _, more := strings.Cut(s, "; ")
	if more {
		head += " …"
	}
	return head
}

func plain(s string) string { return strings.NewReplacer("**", "", "`", "").Replace(s) }

func agreement(r row) string {
	switch {
	case r.Broken != "":
		return "could not be run: " + r.Broken
	case len(r.Wrong) > 0:
		return "NO: " + strings.Join(r.Wrong, "; ")
	}
	return "yes"
}

func tally(rows []row) string {
	n := 0
	var seconds float64
	for _, r := range rows {
		seconds += r.Seconds
		if r.agrees() {
			n++
		}
	}
	return fmt.Sprintf("%d of %d agree, %.0f min.", n, len(rows), seconds/60)
}

// markdown is the whole table.
func markdown(e environment, rows []row) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Results of the lab

Written by %[1]smake prove PROOF=lab%[1]s on %[2]s: real Tomcats, overloaded the way published experiments did it, each in a network namespace of its own. tcpdiag was given the port and nothing else. %[3]s

Linux %[4]s on %[5]d × %[6]s; %[7]s. Load of the machine before (1, 5, 15 min): %[8]s.

"ok" is an answer of status 200; a packet is not a client. What tcpdiag said is its worst verdict during the load, with the numbers of that moment; losses are those of the last 60 s. Plan's tolerance where a scenario holds it to one: 2 %% for each outcome, 5 %% for the time.

`, "`", e.Began.UTC().Format("2006-01-02 15:04"), tally(rows), e.Kernel, e.Cores, e.CPU, strings.Join(e.Versions, ", "), e.LoadBefore)
	fmt.Fprintln(&b, "| scenario | load and timeouts | the clients counted | tcpdiag said | `plan` predicted | agree |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|")
	for _, r := range rows {
		fmt.Fprintln(&b, r.markdown())
	}
	return b.Bytes()
}

func (r row) markdown() string {
	plan := r.Plan
	if plan == "" {
		plan = "–"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", r.Name, cell(r.Load), cell(r.Clients), cell(r.Said), cell(plan), cell(agreement(r)))
}

// replaceRows puts rows that were run again by themselves into a table, and
// says so under it.
func replaceRows(old []byte, e environment, rows []row) []byte {
	lines := strings.Split(strings.TrimRight(string(old), "\n"), "\n")
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
		for i := range lines {
			if strings.HasPrefix(lines[i], "| "+r.Name+" |") {
				lines[i] = r.markdown()
			}
		}
	}
	all, agree := 0, 0
	for _, line := range lines {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| scenario |") {
			all++
		}
		if strings.HasSuffix(line, "| yes |") {
			agree++
		}
	}
	text := regexp.MustCompile(`\d+ of \d+ agree`).ReplaceAllString(strings.Join(lines, "\n"), fmt.Sprintf("%d of %d agree", agree, all))
	return fmt.Appendf(nil, "%s\n\nRun again by themselves on %s, load of the machine before: %s: %s.\n",
		text, e.Began.UTC().Format("2006-01-02 15:04"), e.LoadBefore, strings.Join(names, ", "))
}

// cell keeps a text within its cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "; ", "<br>").Replace(s)
}
