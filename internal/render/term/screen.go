// Package term is a terminal's text: a screen with a grid of labels, which no line is wider
// than (screen.go), styles and the spans that have them (style.go), how a status is coloured
// (style.go), a figure over time as a row of blocks (chart.go), and numbers with their units
// (number.go). It knows no listener.
package term

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// The grid: everything about a listener hangs on one column of labels.
const (
	Indent     = 2
	LabelWidth = 15 // max_connections, the longest cause
	TextColumn = Indent + LabelWidth + 2

	minWidth, defaultWidth = 40, 80
	// MaxWidth is of the widest screen, in columns.
	MaxWidth = 120

	Dot = "·" // stands between things of a kind
)

// Screen collects lines that are never wider than width.
type Screen struct {
	b     strings.Builder
	Width int
	Color bool
}

// New is an empty one, this many columns wide: between 40 and 120, 80 where width is 0.
func New(width int, color bool) *Screen {
	if width <= 0 {
		width = defaultWidth
	}
	return &Screen{Width: min(max(width, minWidth), MaxWidth), Color: color}
}

// String is what was written so far.
func (s *Screen) String() string { return s.b.String() }

// Raw writes a text as it is: it may run beyond the edge.
func (s *Screen) Raw(text string) { s.b.WriteString(text) }

// Lines is what was written so far, line by line.
func (s *Screen) Lines() []string {
	text := strings.TrimSuffix(s.b.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Rule draws a line from edge to edge.
func (s *Screen) Rule() { s.Line(Span{strings.Repeat("─", s.Width), Dim}) }

// Height is how many lines of the terminal it takes: one that is wider takes several.
func (s *Screen) Height() (n int) {
	for _, line := range s.Lines() {
		n += 1 + max(lipgloss.Width(line)-1, 0)/s.Width
	}
	return n
}

// Write hands what was written to w; what names it in an error.
func (s *Screen) Write(w io.Writer, what string) error {
	if _, err := io.WriteString(w, s.b.String()); err != nil {
		return fmt.Errorf("render: %s: %w", what, err)
	}
	return nil
}

// Command writes it in one piece, to be copied: it begins further left, or runs
// beyond the edge, sooner than that it is broken.
func (s *Screen) Command(start int, text string) {
	s.Raw(Blanks(max(min(start, s.Width-lipgloss.Width(text)), 0)) + CommandStyle.Of(text).ANSI(s.Color) + "\n")
}

// Blank writes an empty line.
func (s *Screen) Blank() { s.b.WriteByte('\n') }

// Line writes the spans as one line, cut at the screen's edge.
func (s *Screen) Line(spans ...Span) {
	var text strings.Builder
	room := s.Width
	for _, sp := range spans {
		sp.Text = Cut(sp.Text, room)
		room -= sp.Width()
		text.WriteString(sp.ANSI(s.Color))
	}
	s.b.WriteString(strings.TrimRight(strings.ReplaceAll(text.String(), Nbsp, " "), " "))
	s.b.WriteByte('\n')
}

// Row writes a label in its column and the spans next to it, wrapped at words
// under each other.
func (s *Screen) Row(label Span, spans ...Span) {
	label.Text = Cut(label.Text, LabelWidth)
	head := []Span{{Text: Blanks(Indent)}, label, {Text: Blanks(TextColumn - Indent - label.Width())}}
	s.Wrapped(head, TextColumn, spans...)
}

// Paragraph writes the spans wrapped at words, indented by column.
func (s *Screen) Paragraph(column int, spans ...Span) {
	s.Wrapped([]Span{{Text: Blanks(column)}}, column, spans...)
}

// Wrapped writes head and then the spans' words; lines after the first start
// at column, where head has to end too.
func (s *Screen) Wrapped(head []Span, column int, spans ...Span) {
	room := max(s.Width-column, 1)
	line, used := head, 0
	all := words(spans, room)
	for i, w := range all {
		need := w.Width()
		if i+1 < len(all) && all[i+1].Text == Dot { // a dot ends a line, it never begins one
			need += 2
		}
		if used > 0 && used+1+need > room {
			s.Line(line...)
			line, used = []Span{{Text: Blanks(column)}}, 0
		}
		if used > 0 {
			line = append(line, w.gap)
			used++
		}
		line = append(line, w.Span)
		used += w.Width()
	}
	s.Line(line...)
}

// word is a span without blanks; gap is the blank before it.
type word struct {
	Span
	gap Span
}

// A unit stands on the line of its number, and an option on that of its command ("ulimit -n").
var (
	unit   = regexp.MustCompile(`(\d) ((?:s|ms|min|h|KiB|MiB|GiB)\b|%)`)
	option = regexp.MustCompile(`(\w) (-[a-zA-Z]\b)`)
)

// words splits spans at their blanks. A word that no line has room for is
// broken, because a path cut off says less than a path on two lines. A span's
// text joins the span before it unless a blank stands between them.
func words(spans []Span, room int) []word {
	var out []word
	for _, sp := range spans {
		text := option.ReplaceAllString(unit.ReplaceAllString(sp.Text, "$1"+Nbsp+"$2"), "$1"+Nbsp+"$2")
		for i, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' }) {
			gap := Span{Text: " "}
			if i > 0 {
				gap.style = sp.style
			}
			for lipgloss.Width(f) > room {
				head := f[:fitting(f, room)]
				out = append(out, word{Span{head, sp.style}, gap})
				f = f[len(head):]
			}
			out = append(out, word{Span{f, sp.style}, gap})
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

// Columns is how wide they are side by side.
func Columns(spans []Span) int {
	n := 0
	for _, sp := range spans {
		n += sp.Width()
	}
	return n
}

// Label is the name in the left column of a row.
func Label(name string) Span { return Span{name, Dim} }

// Cut shortens text to that many columns, with an ellipsis where something is lost.
func Cut(text string, columns int) string {
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

// Blanks are this many; none where n is negative.
func Blanks(n int) string { return strings.Repeat(" ", max(n, 0)) }

// PadLeft fills a text up with blanks before it.
func PadLeft(text string, columns int) string {
	return Blanks(columns-lipgloss.Width(text)) + text
}

// PadRight has the blanks behind the text.
func PadRight(text string, columns int) string {
	return text + Blanks(columns-lipgloss.Width(text))
}

// TableWidth is how wide a table is with these columns.
func TableWidth(widths []int, gap int) int {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}
