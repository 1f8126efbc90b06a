package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// GateWords say what it does.
func GateWords(s *symptoms.Symptoms) string {
	g := reading.Gate(s.Now)
	return phrase.Sprintf("a SemaphoreValve lets %d requests through at a time%s, and the others wait in it with a thread each", g.Value, words.SourceOf(g))
}

// gateSteps are what to do about it.
func gateSteps(s *symptoms.Symptoms) []model.Step {
	g := reading.Gate(s.Now)
	most, _ := reading.MaxThreads(s.Now)
	return []model.Step{{
		Text:    "Shorten what the handlers wait for; or raise the valve's concurrency, if what they call has room for more at the same time",
		Setting: "SemaphoreValve concurrency", From: phrase.Sprintf("%v", g.Value), To: phrase.Sprintf("%v", most),
	}}
}
