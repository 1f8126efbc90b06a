package render

import "math"

// unknown is a column of a lane in which nothing was seen.
const unknown = -1

// lane is a row of a chart: a figure over time, a column for each moment.
type lane struct {
	limit int // what full is, drawn as bad; 0: the figure has no limit
	style style
}

// blocks draws the values, each as high as its share of top. What is not empty
// shows, and only what reaches top is drawn full.
func (l lane) blocks(values []int, top int) []span {
	var out []span
	for _, v := range values {
		sp := l.block(v, top)
		if n := len(out); n > 0 && out[n-1].style == sp.style {
			out[n-1].text += sp.text
			continue
		}
		out = append(out, sp)
	}
	return out
}

func (l lane) block(v, top int) span {
	levels := [...]string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	switch {
	case v == unknown:
		return span{" ", plain}
	case v <= 0:
		return span{"·", dim}
	}
	ratio := float64(v) / float64(max(top, 1))
	step := min(int(math.Round(ratio*8)), 8)
	if ratio < 1 {
		step = min(max(step, 1), 7)
	}
	sp := span{levels[step-1], l.style}
	if l.limit > 0 && v >= l.limit {
		sp.style = bad
	}
	return sp
}
