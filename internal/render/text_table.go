package render

import (
	"strconv"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// tableText is a table of listeners on a screen.
type tableText struct{ *screen }

// brief gives each listener one line.
func (s tableText) brief(ls []*model.Listener, ruled bool) {
	if len(ls) == 0 {
		return
	}
	if ruled {
		s.rule()
	}
	s.rows(ls, nil)
}

// rows are a heading and a line for each listener. One of them may be marked.
func (s tableText) rows(ls []*model.Listener, marked *model.Listener) {
	rows := make([][]string, 0, len(ls)+1)
	rows = append(rows, []string{"", "listener", "process", "accept queue", "connections", "threads"})
	for _, l := range ls {
		rows = append(rows, tableRow(l))
	}
	widths := columnWidths(rows)
	s.row(rows[0], widths, dim, dim, "")
	for i, l := range ls {
		st, mark := plain, ""
		if l == marked {
			st, mark = bold, "▸"
		}
		s.row(rows[i+1], widths, statusStyle(l.Verdict.Status), st, mark)
	}
}

func (s tableText) row(row []string, widths []int, first, others style, mark string) {
	spans := make([]span, 0, 2*len(row))
	for col, cell := range row {
		text, st := padLeft(cell, widths[col]), others
		if col < 3 {
			text = padRight(cell, widths[col])
		}
		if col == 0 {
			st = first
		}
		spans = append(spans, span{text, st}, span{text: padRight(mark, 2)})
		mark = ""
	}
	s.line(spans...)
}

// columnWidths keeps the table within 80 columns.
func columnWidths(rows [][]string) []int {
	most := []int{9, 21, 13, 12, 15, 9}
	widths := make([]int, len(most))
	for _, r := range rows {
		for col := range r {
			r[col] = cut(r[col], most[col])
			widths[col] = max(widths[col], lipgloss.Width(r[col]))
		}
	}
	return widths
}

func tableRow(l *model.Listener) []string {
	process := "n/a"
	if p := l.Process; p != nil {
		process = printable(p.Comm) + " " + strconv.Itoa(p.PID)
	}
	if !l.Listening() {
		process = ""
	}
	return []string{
		l.Verdict.Status.String(), whereOf(l), process,
		fraction(acceptQueue(l)), fraction(connections(l)), fraction(threads(l)),
	}
}

// fraction is "12/8,192"; without a maximum just the number.
func fraction(st stage) string {
	switch {
	case st.used == nil:
		return "n/a"
	case st.max == nil:
		return phrase.Number(*st.used)
	default:
		return phrase.Number(*st.used) + "/" + phrase.Number(*st.max)
	}
}
