package draws

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// outcome is what came of a draw.
type outcome struct {
	Seed   uint64
	Number int
	At     time.Time
	Commit string // that was tried

	Draw, Truth, Said, Agent, Counts string
	Tried                            string // the advice, and what came of it; "" where it was not
	Result, Why                      string

	Handler, Fault, Clients, Viewer string // what kind it is of
}

// table is the file of results.
func table(all []outcome) string {
	var b strings.Builder
	b.WriteString("# Deployments that nobody chose\n\nWritten by `make prove PROOF=draws`: " + summary(all) + "\n\n")
	b.WriteString("Of each kind, how many were unknown:\n\n| kind | draws | unknown | undecided | wrong |\n|---|---|---|---|---|\n")
	for _, k := range kinds(all) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", k.name, k.all, k.of[unknown], k.of[undecided], k.of[wrong])
	}
	b.WriteString("\n| draw | what | truth | tcpdiag says | the agent says | clients | so it is |\n|---|---|---|---|---|---|---|\n")
	for _, o := range all {
		result := o.Result
		if o.Why != "" {
			result += ": " + o.Why
		}
		if o.Tried != "" && !strings.Contains(o.Why, o.Tried) {
			result += "; with the advised " + o.Tried
		}
		cells := []string{fmt.Sprintf("Draw/%d/%d", o.Seed, o.Number), o.Draw, o.Truth, o.Said, o.Agent, o.Counts, result}
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(strings.ReplaceAll(c, "|", `\|`), "\n", " ")
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

// summary is one sentence.
func summary(all []outcome) string {
	n, seeds := make(map[string]int), []string(nil)
	for _, o := range all {
		n[o.Result]++
		if s := fmt.Sprint(o.Seed); !slices.Contains(seeds, s) {
			seeds = append(seeds, s)
		}
	}
	return fmt.Sprintf("%d draws of seed %s: %d right, %d unknown and says what is missing, %d undecided because this machine was busy, %d wrong.%s",
		len(all), strings.Join(seeds, " and "), n[right], n[unknown], n[undecided], n[wrong], when(all))
}

// when is in which time, and of which commits.
func when(all []outcome) string {
	var from, to time.Time
	var commits []string
	undated := 0
	for _, o := range all {
		if o.At.IsZero() {
			undated++
			continue
		}
		if from.IsZero() || o.At.Before(from) {
			from = o.At
		}
		if o.At.After(to) {
			to = o.At
		}
		if !slices.Contains(commits, o.Commit) {
			commits = append(commits, o.Commit)
		}
	}
	if from.IsZero() {
		return ""
	}
	const minute = "2006-01-02 15:04"
	text := fmt.Sprintf(" From %s to %s (UTC), of %s.", from.UTC().Format(minute), to.UTC().Format(minute), strings.Join(commits, ", "))
	if undated > 0 {
		text += fmt.Sprintf(" %d are of earlier runs, whose time was not written down.", undated)
	}
	return text
}

type kind struct {
	name string
	all  int
	of   map[string]int
}

func kinds(all []outcome) (out []kind) {
	for _, o := range all {
		fault := o.Fault
		if fault == "" {
			fault = "none"
		}
		names := []string{"handler: " + o.Handler, "clients: " + o.Clients, "fault: " + fault, "asked by: " + o.Viewer}
		if o.Tried != "" {
			names = append(names, "advice tried")
		}
		for _, name := range names {
			i := slices.IndexFunc(out, func(k kind) bool { return k.name == name })
			if i < 0 {
				i, out = len(out), append(out, kind{name: name, of: make(map[string]int)})
			}
			out[i].all++
			out[i].of[o.Result]++
		}
	}
	slices.SortFunc(out, func(a, b kind) int { return strings.Compare(a.name, b.name) })
	return out
}
