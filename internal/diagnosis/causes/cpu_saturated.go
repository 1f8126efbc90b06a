package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// cpuSaturated: the process's threads wait for a processor.
func cpuSaturated() Cause {
	return Cause{
		Name: model.CauseCPUSaturated,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) Certainty { return When(m.Starved(), Surely) },
			refuted: []refutation[*evidence.Moment]{
				{"the CPU limit withheld half of what the process wanted while the acceptor waited, or a quarter over about a second", (*evidence.Moment).StarvedByLimit},
				{allTaken, func(m *evidence.Moment) bool { return m.AtLatch() || m.AtLimit() }},
				{"the acceptor sleeps for set times", (*evidence.Moment).Pauses},
			},
		},
		rests: rests(evidence.StrengthProcess),
		around: rule[reading.Pair]{holds: func(p reading.Pair) Certainty {
			return max(When(p.Either(p.AtConnectionLimit) && p.ShortOfCPU(), Surely), When(p.Fraction(reading.RunDelay) >= p.T.RunDelay, Possibly))
		}, refuted: []refutation[reading.Pair]{
			{acceptorRuns, reading.Pair.AcceptorRuns},
			{"most of the busy threads do not wait for a CPU, and the acceptor was not seen to", reading.Pair.BusyElsewhere},
			{limitInDoubt, reading.Pair.LimitInDoubt},
		}},
		Now: rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty {
			return max(When(s.TakenUp() && s.ShortOfCPU(), Surely),
				When(s.WaitsForNothing() && s.Fraction(reading.RunDelay) >= 2*s.T.RunDelay && s.ThreadsFree(), Possibly))
		}, refuted: []refutation[*symptoms.Symptoms]{
			{limitInDoubt, func(s *symptoms.Symptoms) bool { return s.StandsLong() && s.LimitInDoubt() }},
		}},
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return " because " + words.CPU(s, model.CauseCPUSaturated)
		},
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.CPUEvidence(s, words.CPU(s, model.CauseCPUSaturated), model.CauseCPUSaturated, v)
		},
		Advice: func(*symptoms.Symptoms, model.Verdict) string { return AdviseCPU },
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			return []model.Step{advice.GiveCPU(s, moreCPU)},
				"More threads, connections or acceptCount: they only add to what waits for a CPU."
		},
		Book: Runbook{
			Title:     "threads wait for a processor",
			Seen:      "The process's threads wait for a processor (run delay).",
			Change:    "More CPU, fewer threads, or shed load earlier (rate limiting in the proxy).",
			Vain:      "More threads, connections or acceptCount: they only add to what waits.",
			Holds:     "the acceptor itself waited for a CPU for most of the time; or as many threads did as half of the busy ones",
			Otherwise: "the limit that is reached, and cpu_saturated as a finding beside it",
		},
	}
}

const acceptorRuns = "the acceptor does not wait for a CPU: it sleeps, waits at the connection limit, or takes connections as they come"

const limitInDoubt = "all connections may be taken, since maxConnections is not known for certain, and the acceptor was not seen"

const moreCPU = "Give the process more CPU, or shed load before it gets here"

// AdviseCPU is what to do where threads wait for a CPU.
const AdviseCPU = "Give the process more CPU, or shed load before it gets here. More threads, connections or acceptCount would make it worse: they only add to what waits for a CPU."
