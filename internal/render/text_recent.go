package render

import "github.com/tcpdiag/tcpdiag/internal/diagnosis"

// recent says what was lost before, of a listener that loses nothing now: never in red.
func (s answerText) recent() {
	if said := diagnosis.Quiet(s.l, s.snap.Time); said != "" {
		s.paragraph(answerColumn, span{printable(said), warn})
	}
}
