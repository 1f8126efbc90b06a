package diagnosis

import (
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// steady is an advised limit that does not shrink while the trouble lasts: what was
// advised for the same limit before is the least, if the limit in force is the same.
func (j *judge) steady(stage string, inForce, to int) int {
	if j.Shown == nil || !j.Shown.Started || j.Shown.Verdict.Status < model.StatusWarning || j.Now.Connector != nil && j.Now.Connector.Processes > 1 {
		return to
	}
	for _, s := range j.Shown.Verdict.Answer.Do {
		before, err := strconv.Atoi(s.To)
		if s.Limit == stage && err == nil && s.From == strconv.Itoa(inForce) {
			return max(to, before)
		}
	}
	return to
}
