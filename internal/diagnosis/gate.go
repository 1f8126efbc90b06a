package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// gateWords say what it does.
func (j *judge) gateWords() string {
	g := reading.Gate(j.Now)
	return phrase.Sprintf("a SemaphoreValve lets %d requests through at a time%s, and the others wait in it with a thread each", g.Value, sourceOf(g))
}

// gateSteps are what to do about it.
func (j *judge) gateSteps() []model.Step {
	g := reading.Gate(j.Now)
	most, _ := reading.MaxThreads(j.Now)
	return []model.Step{{
		Text:    "Shorten what the handlers wait for; or raise the valve's concurrency, if what they call has room for more at the same time",
		Setting: "SemaphoreValve concurrency", From: phrase.Sprintf("%v", g.Value), To: phrase.Sprintf("%v", most),
	}}
}

func (j *judge) gateFinding(add adder) {
	if reading.Gate(j.Now) == nil || !j.threadsFull {
		return
	}
	add("semaphore_valve", model.SeverityWarning, phrase.Capital(j.gateWords())+".",
		"More threads would wait there, too.")
}
