package advice

import (
	"math"
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// What a step calls the CPU time that a process may have, and that it gets.
const (
	CPULimit = "CPU limit"
	CPUShare = "CPUs that it gets"
)

// CPUsOfLimit is the CPU limit that is wanted, and by what; 0 where it is not known. While the trouble lasts it does not shrink.
func CPUsOfLimit(s *symptoms.Symptoms, limit float64) (to float64, wanted string) {
	more, wanted := MoreCPU(s)
	to = Tenths(limit * more)
	if before := shown(s, func(step *model.Step) bool { return step.Setting == CPULimit && step.From == phrase.Fraction(limit) }); to > 0 && before > to {
		return before, "for the most that have come since the trouble began"
	}
	return to, wanted
}

// GiveCPU is a step with how much CPU time all who come take, where that is known by what those took that were worked off;
// it does not shrink, either.
func GiveCPU(s *symptoms.Symptoms, text string) model.Step {
	step := Action(text)
	got := s.Fraction(reading.CPUUsed)
	if more, _, _ := forAll(s); got > 0 && more > 0 {
		to := max(Tenths(got*more), shown(s, func(step *model.Step) bool { return step.Setting == CPUShare }))
		step.Setting, step.From, step.To, step.Limit = CPUShare, phrase.Fraction(got), phrase.Decimal(to), reading.LimitCPU
	}
	return step
}

// shown is the value that was advised before, 0 where none was.
func shown(s *symptoms.Symptoms, is func(*model.Step) bool) float64 {
	if s.Shown == nil {
		return 0
	}
	for i := range s.Shown.Verdict.Answer.Do {
		step := &s.Shown.Verdict.Answer.Do[i]
		if before, err := strconv.ParseFloat(step.To, 64); err == nil && is(step) {
			return before
		}
	}
	return 0
}

// Tenths is a number that a person would write, not below n.
func Tenths(n float64) float64 { return math.Ceil(n*10) / 10 }

// MoreCPU is how many times the CPU limit is wanted, and by what; 0 where it is not known. What the threads wanted says
// less than who came, as each of those that run at once adds to it, and nothing where nearly all of it is withheld.
func MoreCPU(s *symptoms.Symptoms) (times float64, wanted string) {
	t := s.Throttling()
	if t.Fraction() == 0 {
		return 0, ""
	}
	if times, wanted, known := forAll(s); known {
		return times, wanted
	}
	if t.Withheld >= .9 {
		return 0, ""
	}
	return 1 / (1 - t.Withheld), "as much as the process wanted"
}

// forAll is how many times the CPU time is wanted by which the requests were worked off that were: how many clients come
// for each of these, and a quarter more. known is false where clients do not show it; 0 times is no number to give.
func forAll(s *symptoms.Symptoms) (times float64, wanted string, known bool) {
	const (
		least, young = 5, 15 * time.Second // do not show what a request takes
		most         = 10.                 // times: above it is no number to give
	)
	lost := s.Losses()
	c := lost.Clients
	if c == nil || c.Flood != nil || c.PacketsLost > 0 || c.Untracked > 0 || !c.Answers.Known || c.Begun < least+c.Answers.Checks {
		return 0, "", false
	}
	came := c.Begun - c.Answers.Checks // who asks for nothing takes no CPU time
	done, settled := c.Answers.Answered+lost.AbandonedRequests, c.Arrivals != nil && c.Arrivals.First >= young
	switch {
	case settled && done >= least && 1.25*float64(came) > most*float64(done):
		return 0, "", true
	case settled && done >= least && came > done:
		return 1.25 * float64(came) / float64(done), phrase.Sprintf("for all who come: of %v in the last %s it is enough for %v", phrase.Count(came, "client"), phrase.Seconds(c.Observed), phrase.Number(done)), true
	case s.Shown != nil && (!settled || done < least): // more will be known
		return 0, "", true
	}
	return 0, "", false
}
