package causes

import (
	"math"
	"strconv"
	"time"

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
		moment: rule[*evidence.Moment]{holds: func(m *evidence.Moment) Certainty {
			return max(When(m.Throttled(evidence.Most) || m.Starved() && m.Throttled(0), Surely), When(m.Throttled(evidence.Some), Possibly))
		}},
		rests: rests(evidence.StrengthProcess),
		around: rule[reading.Pair]{holds: func(p reading.Pair) Certainty {
			return max(When(p.ThrottledMost(), Surely), When(p.Throttling().Fraction() >= p.T.ThrottledFraction, Possibly))
		}},
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
			Holds:     "the cgroup withheld half of the CPU time that was wanted in half of its periods (a quarter of it in a quarter of them, where no limit is reached)",
			Otherwise: "the limit that is reached",
		},
	}
}

func throttledSteps(s *symptoms.Symptoms) []model.Step {
	step := advice.Action("Raise the CPU limit (the container's, or CPUQuota= of the unit), or remove it and keep the request")
	if p := s.Now.Process; p != nil && p.CPULimit != nil && *p.CPULimit > 0 {
		step.Setting, step.From = cpuSetting, phrase.Fraction(*p.CPULimit)
		if to, _ := cpusWanted(s, *p.CPULimit); to > 0 {
			step.To, step.Limit = phrase.Decimal(to), reading.LimitCPU
		}
	}
	return []model.Step{step}
}

const cpuSetting = "CPU limit"

// cpusWanted is the CPU limit that is wanted, and by what; 0 where it is not known. While the trouble lasts it does not shrink.
func cpusWanted(s *symptoms.Symptoms, limit float64) (to float64, wanted string) {
	more, wanted := moreCPU(s)
	to = tenths(limit * more)
	if s.Shown == nil || to == 0 {
		return to, wanted
	}
	for _, step := range s.Shown.Verdict.Answer.Do {
		if before, err := strconv.ParseFloat(step.To, 64); err == nil && before > to && step.Setting == cpuSetting && step.From == phrase.Fraction(limit) {
			return before, "for the most that have come since the trouble began"
		}
	}
	return to, wanted
}

// tenths is a number that a person would write, not below n.
func tenths(n float64) float64 { return math.Ceil(n*10) / 10 }

// moreCPU is how many times the CPU limit is wanted, and by what; 0 where it is not known. Where clients are followed it is
// how many come for each whose request is worked off, and a quarter more. What the threads wanted says less, as each of
// those that run at once adds to it, and nothing where nearly all of it is withheld.
func moreCPU(s *symptoms.Symptoms) (times float64, wanted string) {
	t, lost := s.Throttling(), s.Losses()
	if t.Fraction() == 0 {
		return 0, ""
	}
	const (
		few, young = 5, 15 * time.Second // do not show what a request takes
		most       = 10.                 // times: above it is no number to give
	)
	if c := lost.Clients; c != nil && c.Flood == nil && c.PacketsLost == 0 && c.Untracked == 0 && c.Answers.Known && c.Begun >= few+c.Answers.Checks {
		came := c.Begun - c.Answers.Checks // who asks for nothing takes no CPU time
		done, settled := c.Answers.Answered+lost.AbandonedRequests, c.Arrivals != nil && c.Arrivals.First >= young
		switch {
		case settled && done >= few && 1.25*float64(came) > most*float64(done):
			return 0, ""
		case settled && done >= few && came > done:
			return 1.25 * float64(came) / float64(done), phrase.Sprintf("for all who come: of %v in the last %s it is enough for %v", phrase.Count(came, "client"), phrase.Seconds(c.Observed), phrase.Number(done))
		case s.Shown != nil && (!settled || done < few): // more will be known
			return 0, ""
		}
	}
	if t.Withheld >= .9 {
		return 0, ""
	}
	return 1 / (1 - t.Withheld), "as much as the process wanted"
}

// AdviseThrottled says how much CPU the process wanted.
func AdviseThrottled(s *symptoms.Symptoms) string {
	text := "Raise the CPU limit (the container's, or CPUQuota= of the unit)"
	if more, wanted := moreCPU(s); more > 0 {
		if limit := s.Now.Process.CPULimit; limit != nil && *limit > 0 {
			to, wanted := cpusWanted(s, *limit)
			text += phrase.Sprintf(" from %s to %s CPUs, %s", phrase.Fraction(*limit), phrase.Decimal(to), wanted)
		} else {
			text += phrase.Sprintf(" to %s times what it is, %s", phrase.Decimal(tenths(more)), wanted)
		}
	}
	return text + ", or remove it and keep the request. More threads would make it worse: the quota is used up sooner in each period."
}
