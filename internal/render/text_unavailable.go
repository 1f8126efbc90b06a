package render

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

const maxNamed = 4 // things named that share a reason; the rest is counted

// missing are things that cannot be read for the same reason.
type missing struct {
	why, how string
	what     []string
}

// Unavailable says what could not be read, why, and how to read it.
func (s SnapshotText) Unavailable(in []model.Unavailable) {
	if len(in) == 0 {
		return
	}
	s.Rule()
	s.Line(term.Bold.Of("NOT READ"))
	for _, m := range byReason(in) {
		s.Paragraph(term.Indent, term.Text(m.names()+":"), term.Warn.Of(term.Printable(m.why)))
		if m.how != "" {
			s.Wrapped([]term.Span{term.Text(term.Blanks(term.Indent)), term.Good.Of("→ ")}, term.Indent+2, term.Text(term.Printable(m.how)))
		}
	}
}

func byReason(in []model.Unavailable) []*missing {
	var out []*missing
	seen := make(map[[2]string]*missing)
	for _, u := range in {
		key := [2]string{u.Why, u.How}
		m := seen[key]
		if m == nil {
			m = &missing{why: u.Why, how: u.How}
			seen[key] = m
			out = append(out, m)
		}
		m.what = append(m.what, u.What)
	}
	return out
}

func (m *missing) names() string {
	named := m.what[:min(len(m.what), maxNamed)]
	text := term.Printable(strings.Join(named, ", "))
	if rest := len(m.what) - len(named); rest > 0 {
		text += " and " + phrase.Number(rest) + " more"
	}
	return text
}
