package diagnosis

import (
	"math"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// cpuThrottles: the cgroup's CPU limit keeps the process from running.
func cpuThrottles() cause {
	return cause{
		name: model.CauseCPUThrottled,
		moment: rule[*evidence.Moment]{holds: func(m *evidence.Moment) certainty {
			return max(when(m.Throttled(evidence.Most) || m.Starved() && m.Throttled(0), surely), when(m.Throttled(evidence.Some), possibly))
		}},
		rests: rests(evidence.StrengthProcess),
		around: rule[reading.Pair]{holds: func(p reading.Pair) certainty {
			return max(when(p.ThrottledMost(), surely), when(p.Throttling().Share() >= p.T.ThrottledShare, possibly))
		}},
		now: rule[*judge]{holds: func(j *judge) certainty {
			return max(when(j.takenUp() && j.ThrottledMost(), surely), when(j.waitsForNothing() && j.ThrottledMost(), possibly))
		}},
		because: func(j *judge, _ model.Verdict) string { return " because " + j.cpuPhrase(model.CauseCPUThrottled) },
		evidence: func(j *judge, v model.Verdict) string {
			return j.cpuEvidence(j.cpuPhrase(model.CauseCPUThrottled), model.CauseCPUThrottled, v)
		},
		advice: func(j *judge, _ model.Verdict) string { return j.adviseThrottled() },
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			return j.throttledSteps(), "More threads: the quota is used up sooner in each period."
		},
		book: Runbook{
			Title:     "the CPU limit keeps the process from running",
			Seen:      "The accept queue rose while the cgroup's CPU quota was used up, or requests have waited for a second and longer for threads that are free. A safepoint takes long in such a JVM; while the limit withholds more than half of the CPU time that the process wants, it is named and not `jvm_pause`.",
			Change:    "Raise the CPU limit, or remove it and keep the request.",
			Vain:      "More threads: the quota is used up sooner in each period.",
			Holds:     "the cgroup withheld half of the CPU time that was wanted in half of its periods (a tenth where no limit is reached)",
			Otherwise: "the limit that is reached",
		},
	}
}

func (j *judge) throttledSteps() []model.Step {
	s := action("Raise the CPU limit (the container's, or CPUQuota= of the unit), or remove it and keep the request")
	t, p := j.Throttling(), j.Now.Process
	if p != nil && p.CPULimit != nil && *p.CPULimit > 0 {
		s.Setting, s.From = "CPU limit", phrase.Fraction(*p.CPULimit)
		if t.Share() > 0 && t.Withheld < .9 {
			s.To = phrase.Decimal(math.Ceil(*p.CPULimit/(1-t.Withheld)*10) / 10)
		}
	}
	return []model.Step{s}
}

func (j *judge) adviseThrottled() string {
	s := "Raise the CPU limit (the container's, or CPUQuota= of the unit)"
	if t := j.Throttling(); t.Share() > 0 && t.Withheld < .9 {
		more := 1 / (1 - t.Withheld)
		if limit := j.Now.Process.CPULimit; limit != nil && *limit > 0 {
			s += phrase.Sprintf(" from %s to %s CPUs", phrase.Fraction(*limit), phrase.Decimal(math.Ceil(*limit*more*10)/10))
		} else {
			s += phrase.Sprintf(" to %s times what it is", phrase.Decimal(math.Ceil(more*10)/10))
		}
		s += ", as much as the process wanted"
	}
	return s + ", or remove it and keep the request. More threads would make it worse: the quota is used up sooner in each period."
}
