package render

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// recent says what was lost before, of a listener that loses nothing now: never in red.
func (s listenerText) recent(snap *model.Snapshot) {
	if said := diagnosis.Quiet(s.l.Recent, snap.Time); said != "" && s.l.Verdict.Status < model.StatusLosing {
		s.paragraph(indent, span{printable(said), warn})
	}
}
