package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// cpuSaturated: the process's threads wait for a processor.
func cpuSaturated() cause {
	return cause{
		name: model.CauseCPUSaturated,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) certainty { return when(m.Starved(), surely) },
			refuted: []refutation[*evidence.Moment]{
				{"the CPU limit throttled the process", func(m *evidence.Moment) bool { return m.Throttled(0) }},
				{allTaken, func(m *evidence.Moment) bool { return m.AtLatch() || m.AtLimit() }},
				{"the acceptor sleeps for set times", (*evidence.Moment).Pauses},
			},
		},
		rests: rests(evidence.StrengthProcess),
		around: rule[reading.Pair]{holds: func(p reading.Pair) certainty {
			return max(when(p.Either(p.AtConnectionLimit) && p.ShortOfCPU(), surely), when(p.Share(reading.RunDelay) >= p.T.RunDelay, possibly))
		}, refuted: []refutation[reading.Pair]{
			{"the acceptor does not wait for a CPU: it sleeps, waits at the connection limit, or takes connections as they come", reading.Pair.AcceptorRuns},
			{"most of the busy threads do not wait for a CPU, and the acceptor was not seen to", reading.Pair.BusyElsewhere},
		}},
		now: rule[*judge]{holds: func(j *judge) certainty {
			return max(when(j.takenUp() && j.ShortOfCPU(), surely),
				when(j.waitsForNothing() && j.Share(reading.RunDelay) >= 2*j.T.RunDelay && j.threadsFree(), possibly))
		}},
		because: func(j *judge, _ model.Verdict) string { return " because " + j.cpuPhrase(model.CauseCPUSaturated) },
		evidence: func(j *judge, v model.Verdict) string {
			return j.cpuEvidence(j.cpuPhrase(model.CauseCPUSaturated), model.CauseCPUSaturated, v)
		},
		advice: func(*judge, model.Verdict) string { return adviseCPU },
		steps: func(*judge, model.Verdict) ([]model.Step, string) {
			return []model.Step{action("Give the process more CPU, or shed load before it gets here")},
				"More threads, connections or acceptCount: they only add to what waits for a CPU."
		},
		book: Runbook{
			Title:     "threads wait for a processor",
			Seen:      "The process's threads wait for a processor (run delay).",
			Change:    "More CPU, fewer threads, or shed load earlier (rate limiting in the proxy).",
			Vain:      "More threads, connections or acceptCount: they only add to what waits.",
			Holds:     "the acceptor itself waited for a CPU for most of the time; or as many threads did as half of the busy ones",
			Otherwise: "the limit that is reached, and cpu_saturated as a finding beside it",
		},
	}
}

const adviseCPU = "Give the process more CPU, or shed load before it gets here. More threads, connections or acceptCount would make it worse: they only add to what waits for a CPU."
