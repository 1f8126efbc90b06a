package render

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// recent says what was lost before, of a listener that loses nothing now: never in red.
func (s answerText) recent() {
	if said := diagnosis.Quiet(s.l.Recent, s.snap.Time); said != "" && s.l.Verdict.Status < model.StatusLosing {
		s.paragraph(answerColumn, span{printable(said), warn})
	}
}
