package causes

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
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
			refuted: []refutation[reading.Pair]{
				{withheldMost, func(p reading.Pair) bool { return !p.Either(reading.Stopped) && p.ThrottledMost() }},
				{stillAccepts, func(p reading.Pair) bool { return reading.StillAccepts(p.Now) }},
			},
		},
		Now: rule[*symptoms.Symptoms]{
			holds: func(s *symptoms.Symptoms) Certainty {
				return max(When(s.Halted() || s.InLongSafepoint() || s.Either(reading.Stopped) && reading.QueueWaits(s.Now) || (s.TakenUp() || s.QueueFull) && s.PausedMost(), Surely), When(s.WaitsForNothing() && s.Paused(), Possibly))
			},
			refuted: []refutation[*symptoms.Symptoms]{
				{stillAccepts, func(s *symptoms.Symptoms) bool { return reading.StillAccepts(s.Now) }},
				{withheldMost, func(s *symptoms.Symptoms) bool { return !s.Either(reading.Stopped) && s.ThrottledMost() }},
				{"its threads wait for a CPU, and a safepoint for them", func(s *symptoms.Symptoms) bool { return !s.Either(reading.Stopped) && s.ShortOfCPU() }},
			},
		},
		Near:    func(s *symptoms.Symptoms) bool { return s.MayBeHalted() || s.StandsMostly() },
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string { return " because " + words.Pause(s) },
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.CPUEvidence(s, words.Pause(s), model.CauseJVMPause, v)
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return advice.Pause(s) },
		Steps:  func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) { return advice.PauseSteps(s) },
		Book: Runbook{
			Title:     "the process stands still",
			Seen:      "The accept queue rose while the JVM was stopped at a safepoint; or the process is stopped (state T) or frozen with its cgroup (`docker pause`) while clients wait for it, or all its worker processes are and clients wait to be accepted (nginx); or it has crashed, and its port is open until its core dump is written (`CoreDumping` of `/proc/PID/status`).",
			Check:     "`-Xlog:gc,safepoint` shows the pauses.",
			Change:    "Where collections are not the greater part of it: what asks for the others (`-Xlog:safepoint` names it). Else: a collector with short pauses (ZGC, Shenandoah) or a larger heap removes long ones. Where the process has nearly all the memory that its cgroup may use (`memory_used_bytes`, `memory_limit_bytes` in the JSON): more of that first. For a stopped process: who sent SIGSTOP; `kill -CONT PID`, `docker unpause`. For a crashed one: what it crashed of (`hs_err_pid*.log`, `dmesg`); without core dumps it is gone at once.",
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

// stillAccepts: a server that starts a process for each request accepts by itself.
const stillAccepts = "all its worker processes are stopped, and nobody waits in the accept queue, or it becomes shorter, as accept(2) alone makes it: it accepts by itself"

// withheldMost: a throttled JVM takes as long to get to a safepoint.
const withheldMost = "the CPU limit withheld most of the CPU time that the process wanted"
