package render

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// shownGroups is how many places of threads the screen has room for.
const shownGroups = 6

// stacks are where a thread dump shows the threads that work on requests; where it
// knows none as such, all that do not wait for work.
func (s ListenerText) stacks() {
	if s.L.Process == nil || s.L.Process.Stacks == nil {
		return
	}
	d := s.L.Process.Stacks
	title, shown := "thread dump", 0
	for i := range d.Groups {
		g := &d.Groups[i]
		if g.Idle || g.Worker != (d.Workers > 0) {
			continue
		}
		if shown++; shown > shownGroups {
			s.Row(term.Label(title), term.Dim.Of("and more"))
			break
		}
		s.Row(term.Label(title), term.Bold.Of(phrase.Number(g.Threads)+" × "), term.Text(term.Printable(g.Where())), term.Dim.Of(term.Dot),
			term.Dim.Of(strings.ToLower(strings.ReplaceAll(g.State, "_", " "))))
		title = ""
	}
	if idle := d.Workers - d.Busy(); idle > 0 {
		s.Row(term.Label(title), term.Dim.Of(phrase.Number(idle)+" wait for a request"))
		title = ""
	}
	if v := d.Scheduler; v != nil {
		s.Row(term.Label(title), term.Text(phrase.Sprintf("%d of %s taken", v.Mounted, phrase.Count(v.Parallelism, "carrier"))), term.Dim.Of(term.Dot),
			term.Dim.Of(phrase.Sprintf("%s for one", countWaiting(v.Queued))))
		title = ""
	}
	if d.Deadlocked {
		s.Row(term.Label(title), term.Bad.Of("the JVM found a deadlock"))
		title = ""
	}
	if s.L.OnVirtualThreads() && !d.VirtualShown {
		s.Row(term.Label(title), term.Dim.Of("virtual threads that wait could not be had"))
	}
}

// countWaiting reads "18 virtual threads wait".
func countWaiting(n int) string {
	return phrase.Count(n, "virtual thread") + " " + phrase.Verb(n, "waits", "wait")
}
