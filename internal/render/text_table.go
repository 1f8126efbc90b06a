package render

import (
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// TableText is a table of listeners on a screen.
type TableText struct{ *term.Screen }

// brief gives each listener one line.
func (s TableText) brief(ls []*model.Listener, ruled bool) {
	if len(ls) == 0 {
		return
	}
	if ruled {
		s.Rule()
	}
	s.Rows(ls, nil)
}

// worst are the listeners that are not ok, up to as many as there is room for, and the
// number of the others; all of them, where there is room.
func (s TableText) worst(ls []*model.Listener, room int) {
	n := len(ls)
	if n > room {
		n = 0
		for n < room && ls[n].Verdict.Status > model.StatusOK {
			n++
		}
	}
	if n > 0 {
		s.Rows(ls[:n], nil)
	}
	if rest := ls[n:]; len(rest) > 0 {
		s.Paragraph(answerIndent, term.Dim.Of(s.rest(rest)+": tcpdiag -v lists them"))
	}
}

// rest is "3 losing, 29 ok".
func (s TableText) rest(ls []*model.Listener) string {
	var counts [model.NumStatuses]int
	for _, l := range ls {
		counts[l.Verdict.Status]++
	}
	var parts []string
	for st := model.NumStatuses - 1; st >= 0; st-- {
		if counts[st] > 0 {
			parts = append(parts, phrase.Number(counts[st])+" more "+st.String())
		}
	}
	return strings.Join(parts, ", ")
}

// Rows are a heading and a line for each listener. One of them may be marked.
func (s TableText) Rows(ls []*model.Listener, marked *model.Listener) {
	rows := make([][]string, 0, len(ls)+1)
	rows = append(rows, []string{"", "listener", whoseHeading(ls), "queue", "connections", "threads", "lost", "why"})
	for _, l := range ls {
		rows = append(rows, tableRow(l))
	}
	widths := columnWidths(rows)
	gap := 2
	if room := s.Width - term.TableWidth(widths, gap); room > 0 { // a pod's name is long
		for i, l := range ls {
			if rows[i+1][2] = cutName(processWord(l), widths[2]+room); l.Pod != nil {
				rows[i+1][2] = cutMiddle(term.Printable(l.Pod.String()), widths[2]+room)
			}
		}
		widths = columnWidths(rows, 2)
	}
	if term.TableWidth(widths, gap) > s.Width {
		gap = 1
	}
	s.narrow(rows, widths, gap)
	s.row(rows[0], widths, gap, term.Dim, term.Dim, "")
	for i, l := range ls {
		st, mark := term.Plain, ""
		if l == marked {
			st, mark = term.Bold, "▸"
		}
		s.row(rows[i+1], widths, gap, term.StatusStyle(l.Verdict.Status), st, mark)
	}
}

// narrow makes room for why on a screen that is too narrow for the whole table: it is worth
// more than whose the listener is, and than what the stages have.
func (s TableText) narrow(rows [][]string, widths []int, gap int) {
	for _, cut := range []struct{ column, least int }{{2, 9}, {2, 0}, {5, 0}, {4, 0}} {
		over := term.TableWidth(widths, gap) - s.Width
		if over <= 0 {
			return
		}
		widths[cut.column] = max(cut.least, widths[cut.column]-over)
		if cut.column > 2 { // of half a number nobody has anything
			widths[cut.column] = cut.least
		}
		for _, row := range rows {
			row[cut.column] = cutCell(row, cut.column, widths[cut.column])
		}
	}
}

func (s TableText) row(row []string, widths []int, gap int, first, others term.Style, mark string) {
	spans := make([]term.Span, 0, 2*len(row))
	for col, cell := range row {
		text, st := term.PadLeft(cell, widths[col]), others
		switch {
		case col < 3:
			text = term.PadRight(cell, widths[col])
		case col == len(row)-1:
			text = cell
		}
		switch col {
		case 0:
			st = first
		case 1:
			spans = append(spans, term.Text(term.PadRight(mark, gap)))
		default:
			spans = append(spans, term.Text(term.Blanks(gap)))
		}
		spans = append(spans, st.Of(text))
	}
	s.Line(spans...)
}

// columnWidths keeps the table within 80 columns.
func columnWidths(rows [][]string, uncut ...int) []int {
	most := []int{9, 21, 13, 9, 13, 9, 7, 20}
	widths := make([]int, len(most))
	for _, r := range rows {
		for col := range r {
			if !slices.Contains(uncut, col) {
				r[col] = cutCell(r, col, most[col])
			}
			widths[col] = max(widths[col], lipgloss.Width(r[col]))
		}
	}
	return widths
}

// cutCell cuts a cell that is too wide: of a process the name, not the number that commands take.
func cutCell(row []string, col, most int) string {
	if col == 2 {
		return cutName(row[col], most)
	}
	return term.Cut(row[col], most)
}

// cutName cuts "demo-server 24001" to "demo-se… 24001".
func cutName(text string, most int) string {
	i := strings.LastIndexByte(text, ' ')
	_, err := strconv.Atoi(text[i+1:])
	if room := most - (len(text) - i); err == nil && i > 0 && lipgloss.Width(text) > most && room > 2 {
		return term.Cut(text[:i], room) + text[i:]
	}
	return term.Cut(text, most)
}

func processWord(l *model.Listener) string {
	switch p := l.Process; {
	case !l.Listening():
		return ""
	case p != nil:
		return term.Printable(p.Comm) + " " + strconv.Itoa(p.PID)
	}
	return "n/a"
}

func tableRow(l *model.Listener) []string {
	process := processWord(l)
	if l.Pod != nil {
		process = cutMiddle(term.Printable(l.Pod.String()), 13)
	}
	return []string{
		l.Verdict.Status.String(), shortWhere(l), process,
		Fraction(AcceptQueue(l)), Fraction(Connections(l)), Fraction(Threads(l)), lostWord(l), whyWord(l),
	}
}

// whoseHeading is what the column of owners has.
func whoseHeading(ls []*model.Listener) string {
	if slices.ContainsFunc(ls, func(l *model.Listener) bool { return l.Pod != nil }) {
		return "pod or process"
	}
	return "process"
}

// cutMiddle leaves the beginning of a name, which has its namespace, and the end, which tells the
// pods of a workload apart.
func cutMiddle(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	end := min(6, most/2)
	return string(runes[:most-end-1]) + "…" + string(runes[len(runes)-end:])
}

// lostWord is how many packets were dropped.
func lostWord(l *model.Listener) string {
	if l.Losses == nil {
		return "n/a"
	}
	return phrase.Number(l.Losses.DroppedPackets)
}

// whyWord is the last stage of the chain, where the answer names a cause.
func whyWord(l *model.Listener) string {
	cause := l.Verdict.Cause
	if n := len(l.Verdict.Chain); n > 0 && cause != model.CauseNone {
		cause = l.Verdict.Chain[n-1]
	}
	text := term.Printable(string(cause))
	switch {
	case l.Verdict.Status == model.StatusOK:
		return ""
	case text == "":
		text = "unknown"
	}
	return text
}

// Fraction is "12/8,192"; without a maximum just the number.
func Fraction(st Stage) string {
	switch {
	case st.used == nil:
		return "n/a"
	case st.Max == nil:
		return phrase.Number(*st.used)
	default:
		return phrase.Number(*st.used) + "/" + phrase.Number(*st.Max)
	}
}
