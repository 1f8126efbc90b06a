package render

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// shownGroups is how many places of threads the screen has room for.
const shownGroups = 6

// stacks are where a thread dump shows the threads that work on requests; where it
// knows none as such, all that do not wait for work.
func (s listenerText) stacks() {
	if s.l.Process == nil || s.l.Process.Stacks == nil {
		return
	}
	d := s.l.Process.Stacks
	title, shown := "thread dump", 0
	for i := range d.Groups {
		g := &d.Groups[i]
		if g.Idle || g.Worker != (d.Workers > 0) {
			continue
		}
		if shown++; shown > shownGroups {
			s.row(label(title), span{"and more", dim})
			break
		}
		s.row(label(title), span{phrase.Number(g.Threads) + " × ", bold}, span{text: printable(g.Where())}, span{dot, dim},
			span{strings.ToLower(strings.ReplaceAll(g.State, "_", " ")), dim})
		title = ""
	}
	if idle := d.Workers - d.Busy(); idle > 0 {
		s.row(label(title), span{phrase.Number(idle) + " wait for a request", dim})
		title = ""
	}
	if v := d.Scheduler; v != nil {
		s.row(label(title), span{text: phrase.Sprintf("%d of %s taken", v.Mounted, phrase.Count(v.Parallelism, "carrier"))}, span{dot, dim},
			span{phrase.Sprintf("%s for one", countWaiting(v.Queued)), dim})
		title = ""
	}
	if d.Deadlocked {
		s.row(label(title), span{"the JVM found a deadlock", bad})
		title = ""
	}
	if s.l.OnVirtualThreads() && !d.VirtualShown {
		s.row(label(title), span{"virtual threads that wait could not be had", dim})
	}
}

// countWaiting reads "18 virtual threads wait".
func countWaiting(n int) string {
	return phrase.Count(n, "virtual thread") + " " + phrase.Verb(n, "waits", "wait")
}
