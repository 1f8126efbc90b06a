package advice

import (
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Steady is an advised limit that does not shrink while the trouble lasts: what was
// advised for the same limit before is the least, if the limit in force is the same.
func Steady(s *symptoms.Symptoms, stage string, inForce, to int) int {
	if s.Shown == nil || !s.Shown.Started || s.Shown.Verdict.Status < model.StatusWarning || s.Now.Connector != nil && s.Now.Connector.Processes > 1 {
		return to
	}
	for _, step := range s.Shown.Verdict.Answer.Do {
		before, err := strconv.Atoi(step.To)
		if step.Limit == stage && err == nil && step.From == strconv.Itoa(inForce) {
			return max(to, before)
		}
	}
	return to
}
