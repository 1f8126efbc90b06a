package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

func (j *judge) slowAcceptSteps() (do []model.Step, not string) {
	if j.Now.AcceptQueue == nil {
		return j.unknownSteps(), ""
	}
	to, _ := j.queueWanted()
	if !j.threadsFull && !j.undercounted() {
		not = "More threads or connections: neither was used up."
	}
	return j.backlogSteps(to), not
}
