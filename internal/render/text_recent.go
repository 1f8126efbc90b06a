package render

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// recent says what was lost before, of a listener that loses nothing now: never in red.
func (s AnswerText) recent() {
	if said := diagnosis.Quiet(s.L, s.Snap.Time); said != "" {
		s.Paragraph(answerColumn, term.Warn.Of(term.Printable(said)))
	}
}
