package render

import (
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// The grid: everything about a listener hangs on one column of labels.
const (
	indent     = 2
	labelWidth = 15 // max_connections, the longest cause
	textColumn = indent + labelWidth + 2

	minWidth, defaultWidth, maxWidth = 40, 80, 120

	dot = "·" // stands between things of a kind
)

// screen collects lines that are never wider than width.
type screen struct {
	b     strings.Builder
	width int
	color bool
}

func newScreen(o TextOptions) *screen {
	w := o.Width
	if w <= 0 {
		w = defaultWidth
	}
	return &screen{width: min(max(w, minWidth), maxWidth), color: o.Color}
}

// lines is what was written so far, line by line.
func (s *screen) lines() []string {
	text := strings.TrimSuffix(s.b.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (s *screen) blank() { s.b.WriteByte('\n') }

// line writes the spans as one line, cut at the screen's edge.
func (s *screen) line(spans ...span) {
	var text strings.Builder
	room := s.width
	for _, sp := range spans {
		sp.text = cut(sp.text, room)
		room -= sp.width()
		text.WriteString(sp.ansi(s.color))
	}
	s.b.WriteString(strings.TrimRight(strings.ReplaceAll(text.String(), nbsp, " "), " "))
	s.b.WriteByte('\n')
}

// row writes a label in its column and the spans next to it, wrapped at words
// under each other.
func (s *screen) row(label span, spans ...span) {
	label.text = cut(label.text, labelWidth)
	head := []span{{text: blanks(indent)}, label, {text: blanks(textColumn - indent - label.width())}}
	s.wrapped(head, textColumn, spans...)
}

// paragraph writes the spans wrapped at words, indented by column.
func (s *screen) paragraph(column int, spans ...span) {
	s.wrapped([]span{{text: blanks(column)}}, column, spans...)
}

// wrapped writes head and then the spans' words; lines after the first start
// at column, where head has to end too.
func (s *screen) wrapped(head []span, column int, spans ...span) {
	room := max(s.width-column, 1)
	line, used := head, 0
	all := words(spans, room)
	for i, w := range all {
		need := w.width()
		if i+1 < len(all) && all[i+1].text == dot { // a dot ends a line, it never begins one
			need += 2
		}
		if used > 0 && used+1+need > room {
			s.line(line...)
			line, used = []span{{text: blanks(column)}}, 0
		}
		if used > 0 {
			line = append(line, w.gap)
			used++
		}
		line = append(line, w.span)
		used += w.width()
	}
	s.line(line...)
}

// word is a span without blanks; gap is the blank before it.
type word struct {
	span
	gap span
}

// words splits spans at their blanks. A word that no line has room for is
// broken, because a path cut off says less than a path on two lines. A span's
// text joins the span before it unless a blank stands between them.
func words(spans []span, room int) []word {
	var out []word
	for _, sp := range spans {
		for i, f := range strings.FieldsFunc(sp.text, func(r rune) bool { return r == ' ' }) {
			gap := span{text: " "}
			if i > 0 {
				gap.style = sp.style
			}
			for lipgloss.Width(f) > room {
				head := f[:fitting(f, room)]
				out = append(out, word{span{head, sp.style}, gap})
				f = f[len(head):]
			}
			out = append(out, word{span{f, sp.style}, gap})
		}
	}
	return out
}

// fitting is how many bytes of text fit into that many columns, one rune at least.
func fitting(text string, columns int) int {
	end := 0
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		if end > 0 && lipgloss.Width(text[:next]) > columns {
			break
		}
		end = next
	}
	return end
}

// cut shortens text to that many columns, with an ellipsis where something is lost.
func cut(text string, columns int) string {
	if lipgloss.Width(text) <= columns {
		return text
	}
	if columns < 1 {
		return ""
	}
	if columns == 1 {
		return "…"
	}
	return text[:fitting(text, columns-1)] + "…"
}

func blanks(n int) string { return strings.Repeat(" ", max(n, 0)) }

func padLeft(text string, columns int) string {
	return blanks(columns-lipgloss.Width(text)) + text
}

func padRight(text string, columns int) string {
	return text + blanks(columns-lipgloss.Width(text))
}
