package causes

import (
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// jvmPause: the process is stopped or frozen, or its JVM stands still.
func jvmPause() Cause {
	return Cause{
		Name: model.CauseJVMPause,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) Certainty {
				return max(When(m.Stopped() || m.Paused(evidence.Most), Surely), When(m.Paused(evidence.Some), Possibly))
			},
			refuted: []refutation[*evidence.Moment]{{withheldMost, func(m *evidence.Moment) bool { return !m.Stopped() && m.Throttled(evidence.Most) }}},
		},
		dropped: []refutation[*symptoms.Symptoms]{{"nobody has been accepted for five times as long as it stood still", standsBeyond}},
		rests:   rests(evidence.StrengthProcess),
		around: rule[reading.Pair]{
			holds: func(p reading.Pair) Certainty {
				return max(When(p.Either(reading.Stopped) || p.PausedMost(), Surely), When(p.Paused(), Possibly))
			},
			refuted: []refutation[reading.Pair]{{withheldMost, func(p reading.Pair) bool { return !p.Either(reading.Stopped) && p.ThrottledMost() }}},
		},
		Now: rule[*symptoms.Symptoms]{
			holds: func(s *symptoms.Symptoms) Certainty {
				return max(When(s.Halted() || s.InLongSafepoint() || s.Either(reading.Stopped) && reading.QueueWaits(s.Now) || (s.TakenUp() || s.QueueFull) && s.PausedMost(), Surely), When(s.WaitsForNothing() && s.Paused(), Possibly))
			},
			refuted: []refutation[*symptoms.Symptoms]{
				{withheldMost, func(s *symptoms.Symptoms) bool { return !s.Either(reading.Stopped) && s.ThrottledMost() }},
				{"its threads wait for a CPU, and a safepoint for them", func(s *symptoms.Symptoms) bool { return !s.Either(reading.Stopped) && s.ShortOfCPU() }},
			},
		},
		Near:    func(s *symptoms.Symptoms) bool { return s.MayBeHalted() || s.StandsMostly() },
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string { return " because " + words.Pause(s) },
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.CPUEvidence(s, words.Pause(s), model.CauseJVMPause, v)
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return AdvisePause(s) },
		Steps:  func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) { return pauseSteps(s) },
		Book: Runbook{
			Title:     "the process stands still",
			Seen:      "The accept queue rose while the JVM was stopped at a safepoint; or the process is stopped (state T) or frozen with its cgroup (`docker pause`) while clients wait for it; or it has crashed, and its port is open until its core dump is written (`CoreDumping` of `/proc/PID/status`).",
			Check:     "`-Xlog:gc,safepoint` shows the pauses.",
			Change:    "Where collections are not the greater part of it: what asks for the others (`-Xlog:safepoint` names it). Else: a collector with short pauses (ZGC, Shenandoah) or a larger heap removes long ones. For a stopped process: who sent SIGSTOP; `kill -CONT PID`, `docker unpause`. For a crashed one: what it crashed of (`hs_err_pid*.log`, `dmesg`); without core dumps it is gone at once.",
			Vain:      "More threads or connections: nothing runs in a pause.",
			Holds:     "state T, a frozen cgroup or a core dump that is written; a safepoint that lasts (for a second, where requests are in hand and no limit is reached), or safepoints that took four tenths of the time (a fifth where no limit is reached; with requests in hand alone a warning, where it is not collections that find room)",
			Otherwise: "the limit that is reached",
		},
	}
}

// standsBeyond: whatever keeps clients in the accept queue, it is not that pause, which is over.
func standsBeyond(s *symptoms.Symptoms) bool {
	stands := s.NothingAccepted()
	return stands >= time.Second && !s.Either(reading.Stopped) && 5*s.Pause() <= stands
}

// withheldMost: a throttled JVM takes as long to get to a safepoint.
const withheldMost = "the CPU limit withheld most of the CPU time that the process wanted"

func pauseSteps(s *symptoms.Symptoms) (do []model.Step, not string) {
	const limits = "Any of Tomcat's limits: they have no part in it."
	switch {
	case reading.Stopped(s.Now) && s.Now.Process.Dumping:
		return advice.CrashedSteps(s), limits
	case reading.Stopped(s.Now) && s.Now.Process.Frozen:
		return []model.Step{withoutPause("Find out who froze it (docker pause, systemctl freeze, a checkpoint) and let it go on: docker unpause, systemctl thaw", "")}, limits
	case s.Either(reading.Stopped) && s.Now.Process != nil:
		return []model.Step{
			advice.Action("Find out who stopped it: SIGSTOP, a debugger, a shell's job control"),
			withoutPause("Let it go on", phrase.Sprintf("kill -CONT %v", s.Now.Process.PID)),
		}, limits
	}
	if s.PausedOtherwise() {
		return []model.Step{advice.Action("See what it stands still for, and how long its threads take to stop: -Xlog:safepoint"), withoutPause("End what asks for it (histograms or dumps of the heap, thread dumps, an agent); a thread that takes long to stop is named by -XX:+SafepointTimeout", "")},
			"A larger heap, more threads or connections: it is not collections that stop it."
	}
	first := advice.Action("See how full the heap is after a collection, and how long the pauses are (-Xlog:gc,safepoint)")
	if p := s.Now.Process; p != nil && p.PID > 0 {
		first = advice.Command("See how full the heap is; the collector's log has the pauses (-Xlog:gc,safepoint)", phrase.Sprintf("jcmd %v GC.heap_info", p.PID))
	}
	if words.Heap(s) != "" {
		return []model.Step{withoutPause("Give it a larger heap (-Xmx): what stays in it leaves hardly any room, and each collection takes the time of all", ""), advice.Command("See what fills it", phrase.Sprintf("jcmd %v GC.class_histogram", s.Now.Process.PID))},
			"More threads or connections: nothing runs in a pause, and each request in hand takes memory."
	}
	return []model.Step{first, withoutPause("Give it a larger heap (-Xmx), or a collector with short pauses (ZGC, Shenandoah)", "")},
		"More threads or connections: nothing runs in a pause."
}

// withoutPause is a step that ends the pauses.
func withoutPause(text, line string) model.Step {
	return model.Step{Text: text, Command: line, Limit: reading.LimitPause}
}

// AdvisePause says what to look at where the JVM stood still.
func AdvisePause(s *symptoms.Symptoms) string {
	if reading.Stopped(s.Now) && s.Now.Process.Dumping {
		return "See what it crashed of (hs_err_pid*.log in its working directory, dmesg). Its port stays open until the core dump is written; SIGKILL ends that. No limit of Tomcat's has a part in this."
	}
	if reading.Stopped(s.Now) && s.Now.Process.Frozen {
		return "Find out who froze it: docker pause, systemctl freeze, a checkpoint; \"docker unpause\" or \"systemctl thaw\" lets it go on. No limit of Tomcat's has a part in this."
	}
	if s.Either(reading.Stopped) && s.Now.Process != nil {
		return fmt.Sprintf("Find out who stopped it (SIGSTOP, a debugger, a shell's job control); \"kill -CONT %d\" lets it go on. No limit of Tomcat's has a part in this.", s.Now.Process.PID)
	}
	if s.PausedOtherwise() {
		return "Look at -Xlog:safepoint: it names what the JVM stands still for (histograms or dumps of the heap, thread dumps, an agent), and how long its threads take to stop; -XX:+SafepointTimeout names a thread that takes long. A larger heap or another collector would not help, nor more threads or connections."
	}
	if words.Heap(s) != "" {
		return "Give it a larger heap (-Xmx), or find what fills it (jcmd PID GC.class_histogram): what stays in it leaves hardly any room, and the collector works most of the time. More threads or connections would not help: nothing runs in a pause, and each request in hand takes memory."
	}
	return phrase.Sentences(
		"Look at the pauses in the collector's log (-Xlog:gc,safepoint): a larger heap, or a collector with short pauses (ZGC, Shenandoah), removes the long ones.",
		"More threads or connections would not help, nothing runs in a pause; a longer acceptCount bridges one only if it holds all that arrives meanwhile.")
}
