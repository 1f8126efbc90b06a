package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// inside is how many of the used up threads wait for a lock, a pool or a timer, where
// that is most of them and they wait for no peer; 0 where that is not so, or not known.
func (j *judge) inside() int {
	d := downstreamOf(j.Now)
	if !j.threadsFull || j.waits.cause != model.CauseNone || j.waits.possible != model.CauseNone {
		return 0
	}
	if d != nil && d.Workers != nil {
		if n := d.Locked(j.Now); float64(n) >= mostOf*float64(j.busyOrAll()) {
			return n
		}
		return 0
	}
	// Without the threads' system calls the JVM's own word counts.
	if g := stacksOf(j.Now).BusyGroup(); g != nil && standStill(g) && float64(g.Threads) >= mostOf*float64(stacksOf(j.Now).Busy()) {
		return g.Threads
	}
	return 0
}

// insideFinding: what the threads wait for is in the process itself, which only the
// JVM can say more of.
func (j *judge) insideFinding(add adder) {
	n := j.inside()
	if n == 0 {
		return
	}
	evidence := j.join(phrase.Sprintf("%s %s for a lock, a pool or a timer, and for no peer",
		phrase.Count(n, "busy thread"), phrase.Verb(n, "waits", "wait")), stackNumbers(j.Now))
	g := stacksOf(j.Now).BusyGroup()
	if g == nil {
		add("waiting_inside", model.SeverityWarning, evidence,
			"See what they wait for before raising threads, of which more would wait as well: --thread-dump asks the JVM, as its user and group (or jstack PID).")
		return
	}
	where := model.ShortMethod(g.Library)
	if g.Application != "" {
		where = model.ShortMethod(g.Application)
	}
	add("waiting_inside", model.SeverityWarning, evidence,
		phrase.Sprintf("Look at %s, where most of them are: at what it waits for, and who has that. More threads would wait there as well.", where))
}

// deadlockFinding: threads that wait for one another do so until the restart.
func (j *judge) deadlockFinding(add adder) {
	if s := stacksOf(j.Now); s != nil && s.Deadlocked {
		add("deadlock", model.SeverityCritical, "The JVM found threads that wait for one another's locks.",
			"Restart it, and have the application take its locks in one order: these threads never go on. jstack PID names the locks and their threads.")
	}
}
