package term

import (
	"math"
	"strings"

	"charm.land/lipgloss/v2"
)

// Unknown is a column of a lane in which nothing was seen.
const Unknown = -1

// Chart is a row of a chart: a figure over time, a column for each moment.
type Chart struct {
	Limit int // what full is, drawn as bad; 0: the figure has no limit
	Style Style
}

// Blocks draws the values, each as high as its share of top. What is not empty
// shows, and only what reaches top is drawn full.
func (l Chart) Blocks(values []int, top int) []Span {
	var out []Span
	for _, v := range values {
		sp := l.block(v, top)
		if n := len(out); n > 0 && out[n-1].style == sp.style {
			out[n-1].Text += sp.Text
			continue
		}
		out = append(out, sp)
	}
	return out
}

func (l Chart) block(v, top int) Span {
	levels := [...]string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	switch {
	case v == Unknown:
		return Span{" ", Plain}
	case v <= 0:
		return Span{"·", Dim}
	}
	ratio := float64(v) / float64(max(top, 1))
	step := min(int(math.Round(ratio*8)), 8)
	if ratio < 1 {
		step = min(max(step, 1), 7)
	}
	sp := Span{levels[step-1], l.Style}
	if l.Limit > 0 && v >= l.Limit {
		sp.style = Bad
	}
	return sp
}

// Bar fills width columns. What is not empty shows at least a sliver, and only
// what is full is filled. The blocks are an eighth lower than a line, so that
// the stages stay apart.
func Bar(ratio float64, width int, st Style) []Span {
	full := int(math.Round(min(max(ratio, 0), 1) * float64(width)))
	if ratio < 1 {
		full = max(min(full, width-1), 0)
	}
	filled := strings.Repeat("▇", full)
	if full == 0 && ratio > 0 && width > 0 {
		filled = "▎"
	}
	return []Span{{filled, st}, {strings.Repeat("·", width-lipgloss.Width(filled)), Dim}}
}
