package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// cpuThrottles: the cgroup's CPU limit keeps the process from running.
func cpuThrottles() Cause {
	return Cause{
		Name: model.CauseCPUThrottled,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) Certainty {
				return max(When(m.Throttled(evidence.Most) || m.StarvedByLimit(), Surely), When(m.Throttled(evidence.Much), Possibly))
			},
			refuted: []refutation[*evidence.Moment]{
				{allTaken + lessThanHalf, func(m *evidence.Moment) bool {
					return !m.Throttled(evidence.Most) && (m.AtLatch() || m.AtLimit())
				}},
				{"the acceptor was in accept() in both readings, and did not wait for a CPU between them" + lessThanHalf, func(m *evidence.Moment) bool {
					return !m.Throttled(evidence.Most) && m.Accepting() && !m.StarvedByLimit()
				}},
				{"the acceptor sleeps for set times" + lessThanHalf, func(m *evidence.Moment) bool {
					return !m.Throttled(evidence.Most) && m.Pauses()
				}},
			},
		},
		rests: rests(evidence.StrengthProcess),
		around: rule[reading.Pair]{
			holds: func(p reading.Pair) Certainty {
				return max(When(p.ThrottledMost(), Surely), When(p.ThrottledMuch(), Possibly))
			},
			refuted: []refutation[reading.Pair]{
				{acceptorRuns + lessThanHalf, func(p reading.Pair) bool { return !p.ThrottledMost() && p.AcceptorRuns() }},
			},
		},
		Now: rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty {
			return max(When(s.TakenUp() && s.ThrottledMost(), Surely), When(s.WaitsForNothing() && s.ThrottledMuch(), Possibly))
		}},
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return " because " + words.CPU(s, model.CauseCPUThrottled)
		},
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.CPUEvidence(s, words.CPU(s, model.CauseCPUThrottled), model.CauseCPUThrottled, v)
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return AdviseThrottled(s) },
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			return throttledSteps(s), "More threads: the quota is used up sooner in each period."
		},
		Book: Runbook{
			Title:     "the CPU limit keeps the process from running",
			Seen:      "The accept queue rose while the cgroup's CPU quota was used up, or requests have waited for a second and longer for threads that are free. A safepoint takes long in such a JVM; while the limit withholds more than half of the CPU time that the process wants, it is named and not `jvm_pause`.",
			Change:    "Raise the CPU limit, or remove it and keep the request.",
			Vain:      "More threads: the quota is used up sooner in each period.",
			Holds:     "the cgroup withheld half of the CPU time that was wanted in half of its periods (a quarter of it in a quarter of them, where no limit is reached); or the acceptor waited for a CPU for most of the time, and it withheld half in that time, or a quarter over about a second",
			Otherwise: "the limit that is reached",
		},
	}
}

// lessThanHalf: what withholds half of the CPU time is the cause whatever else is full.
const lessThanHalf = ", and the limit withholds less than half"

func throttledSteps(s *symptoms.Symptoms) []model.Step {
	step := advice.Action("Raise the CPU limit (the container's, or CPUQuota= of the unit), or remove it and keep the request")
	if p := s.Now.Process; p != nil && p.CPULimit != nil && *p.CPULimit > 0 {
		step.Setting, step.From = advice.CPULimit, phrase.Fraction(*p.CPULimit)
		if to, _ := advice.CPUsOfLimit(s, *p.CPULimit); to > 0 {
			step.To, step.Limit = phrase.Decimal(to), reading.LimitCPU
		}
	}
	return []model.Step{step}
}

// AdviseThrottled says how much CPU the process wanted.
func AdviseThrottled(s *symptoms.Symptoms) string {
	text := "Raise the CPU limit (the container's, or CPUQuota= of the unit)"
	if more, wanted := advice.MoreCPU(s); more > 0 {
		if limit := s.Now.Process.CPULimit; limit != nil && *limit > 0 {
			to, wanted := advice.CPUsOfLimit(s, *limit)
			text += phrase.Sprintf(" from %s to %s CPUs, %s", phrase.Fraction(*limit), phrase.Decimal(to), wanted)
		} else {
			text += phrase.Sprintf(" to %s times what it is, %s", phrase.Decimal(advice.Tenths(more)), wanted)
		}
	}
	return text + ", or remove it and keep the request. More threads would make it worse: the quota is used up sooner in each period."
}
