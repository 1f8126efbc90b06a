package diagnosis

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// jvmPause: the process is stopped or frozen, or its JVM stands still.
func jvmPause() cause {
	return cause{
		name: model.CauseJVMPause,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) certainty {
				return max(when(m.Stopped() || m.Paused(evidence.Most), surely), when(m.Paused(evidence.Some), possibly))
			},
			refuted: []refutation[*evidence.Moment]{{withheldMost, func(m *evidence.Moment) bool { return !m.Stopped() && m.Throttled(evidence.Most) }}},
		},
		rests: rests(evidence.StrengthProcess),
		around: rule[reading.Pair]{
			holds: func(p reading.Pair) certainty {
				return max(when(p.Either(reading.Stopped) || p.StoodStillMost(), surely), when(p.StoodStill(), possibly))
			},
			refuted: []refutation[reading.Pair]{{withheldMost, func(p reading.Pair) bool { return !p.Either(reading.Stopped) && p.ThrottledMost() }}},
		},
		now: rule[*judge]{
			holds: func(j *judge) certainty {
				return max(when(j.halted() || j.Either(reading.Stopped) && reading.QueueWaits(j.Now) || (j.takenUp() || j.queueFull) && j.StoodStillMost(), surely), when(j.waitsForNothing() && j.StoodStill(), possibly))
			},
			refuted: []refutation[*judge]{
				{withheldMost, func(j *judge) bool { return !j.Either(reading.Stopped) && j.ThrottledMost() }},
				{"its threads wait for a CPU, and a safepoint for them", func(j *judge) bool { return !j.Either(reading.Stopped) && j.ShortOfCPU() }},
			},
		},
		because:  func(j *judge, _ model.Verdict) string { return " because " + j.pausePhrase() },
		evidence: func(j *judge, v model.Verdict) string { return j.cpuEvidence(j.pausePhrase(), model.CauseJVMPause, v) },
		advice:   func(j *judge, _ model.Verdict) string { return j.advisePause() },
		steps:    func(j *judge, _ model.Verdict) ([]model.Step, string) { return j.pauseSteps() },
		book: Runbook{
			Title:     "the process stands still",
			Seen:      "The accept queue rose while the JVM was stopped at a safepoint; or the process is stopped (state T) or frozen with its cgroup (`docker pause`) while clients wait for it.",
			Check:     "`-Xlog:gc,safepoint` shows the pauses.",
			Change:    "A collector with short pauses (ZGC, Shenandoah) or a larger heap removes long ones. For a stopped process: who sent SIGSTOP; `kill -CONT PID`, `docker unpause`.",
			Vain:      "More threads or connections: nothing runs in a pause.",
			Holds:     "state T or a frozen cgroup; a safepoint that lasts, or safepoints that took four tenths of the time (a fifth where no limit is reached)",
			Otherwise: "the limit that is reached",
		},
	}
}

// withheldMost: a throttled JVM takes as long to get to a safepoint.
const withheldMost = "the CPU limit withheld most of the CPU time that the process wanted"

func (j *judge) pauseSteps() (do []model.Step, not string) {
	const limits = "Any of Tomcat's limits: they have no part in it."
	switch {
	case reading.Stopped(j.Now) && j.Now.Process.Frozen:
		return []model.Step{action("Find out who froze it (docker pause, systemctl freeze, a checkpoint) and let it go on: docker unpause, systemctl thaw")}, limits
	case j.Either(reading.Stopped) && j.Now.Process != nil:
		return []model.Step{
			action("Find out who stopped it: SIGSTOP, a debugger, a shell's job control"),
			command("Let it go on", phrase.Sprintf("kill -CONT %v", j.Now.Process.PID)),
		}, limits
	}
	first := action("See how full the heap is after a collection, and how long the pauses are (-Xlog:gc,safepoint)")
	if p := j.Now.Process; p != nil && p.PID > 0 {
		first = command("See how full the heap is; the collector's log has the pauses (-Xlog:gc,safepoint)", phrase.Sprintf("jcmd %v GC.heap_info", p.PID))
	}
	if j.heapPhrase() != "" {
		return []model.Step{action("Give it a larger heap (-Xmx): what stays in it leaves hardly any room, and each collection takes the time of all"), command("See what fills it", phrase.Sprintf("jcmd %v GC.class_histogram", j.Now.Process.PID))},
			"More threads or connections: nothing runs in a pause, and each request in hand takes memory."
	}
	return []model.Step{first, action("Give it a larger heap (-Xmx), or a collector with short pauses (ZGC, Shenandoah)")},
		"More threads or connections: nothing runs in a pause."
}

func (j *judge) advisePause() string {
	if reading.Stopped(j.Now) && j.Now.Process.Frozen {
		return "Find out who froze it: docker pause, systemctl freeze, a checkpoint; \"docker unpause\" or \"systemctl thaw\" lets it go on. No limit of Tomcat's has a part in this."
	}
	if j.Either(reading.Stopped) && j.Now.Process != nil {
		return fmt.Sprintf("Find out who stopped it (SIGSTOP, a debugger, a shell's job control); \"kill -CONT %d\" lets it go on. No limit of Tomcat's has a part in this.", j.Now.Process.PID)
	}
	if j.heapPhrase() != "" {
		return "Give it a larger heap (-Xmx), or find what fills it (jcmd PID GC.class_histogram): what stays in it leaves hardly any room, and the collector works most of the time. More threads or connections would not help: nothing runs in a pause, and each request in hand takes memory."
	}
	return phrase.Sentences(
		"Look at the pauses in the collector's log (-Xlog:gc,safepoint): a larger heap, or a collector with short pauses (ZGC, Shenandoah), removes the long ones.",
		"More threads or connections would not help, nothing runs in a pause; a longer acceptCount bridges one only if it holds all that arrives meanwhile.")
}
