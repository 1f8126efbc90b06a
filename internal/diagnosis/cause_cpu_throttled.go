package diagnosis

import (
	"math"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func (j *judge) throttledSteps() []model.Step {
	s := action("Raise the CPU limit (the container's, or CPUQuota= of the unit), or remove it and keep the request")
	t, p := j.throttling(), j.Now.Process
	if p != nil && p.CPULimit != nil && *p.CPULimit > 0 {
		s.Setting, s.From = "CPU limit", phrase.Fraction(*p.CPULimit)
		if t.share() > 0 && t.withheld < .9 {
			s.To = phrase.Decimal(math.Ceil(*p.CPULimit/(1-t.withheld)*10) / 10)
		}
	}
	return []model.Step{s}
}
