package render

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// recent says what was lost before, of a listener that loses nothing now: never in red.
func (s answerText) recent() {
	if said := diagnosis.Quiet(s.l, s.snap.Time); said != "" {
		s.Paragraph(answerColumn, term.Warn.Of(term.Printable(said)))
	}
}
