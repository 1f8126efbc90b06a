package loadreport

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

const (
	height     = 40  // of a chart, in its own units
	maxColumns = 240 // of a chart: what a longer course has more is joined
	maxTicks   = 6   // of the horizontal axis: as many as a phone is wide for
)

// chart is some values of the course, one above the other, as paths of SVG.
type chart struct {
	Name, Note  string
	Top, Middle string // of the vertical axis
	Width       int    // columns
	Layers      []layer
	Limit       string // height of the dashed line; "" for none
	LimitName   string
	Marks       []mark
	Times       []tick
	Text        string // for who cannot see it
}

// layer is one value: an area, or a line where it is drawn over areas.
type layer struct {
	Class, Name, Most, Path string
	Line                    bool
}

// mark is a moment of the run: the first limit was reached, the first client was lost.
type mark struct {
	X, Class, Name string
	Percent        string // where its name stands
	Left           bool   // of the mark, as there is no room at its right
}

// tick is a time on the horizontal axis.
type tick struct{ Percent, Text string }

// series is a value of each point; unknown where it was not read.
type series struct {
	class, name string
	of          func(p *api.RunPoint) float64
	line        bool
	past        bool // of the run that this one is compared with
}

const unknown = -1

// course is what is drawn from: the points of a run, joined to columns.
type course struct {
	api.RunCourse
	marks   []mark
	columns int
	join    int // points in a column
	before  *api.RunCourse
}

func newCourse(l, before *api.RunListener) *course {
	c := &course{RunCourse: l.Course}
	n := c.columnAt(c.WidthSeconds, c.Points)
	if before != nil && len(before.Course.Points) > 0 {
		c.before = &before.Course
		n = max(n, c.columnAt(c.WidthSeconds, c.before.Points))
	}
	c.join = 1 + (n-1)/maxColumns
	c.columns = max(2, (n+c.join-1)/c.join)
	if f := l.FirstLimit; f != nil {
		c.mark("mark", "first limit: "+f.Cause, f.AtSeconds)
	}
	if i := slices.IndexFunc(c.Points, func(p api.RunPoint) bool { return p.Dropped > 0 || number(p.TurnedAway) > 0 }); i >= 0 {
		what := "first loss"
		if l.Clients.NoneLost() {
			what = "first drop"
		}
		c.mark("mark lost", what, c.Points[i].T)
	}
	return c
}

// columnAt is how many columns of a width the points need.
func (c *course) columnAt(width float64, points []api.RunPoint) int {
	if len(points) == 0 || width <= 0 {
		return 1
	}
	return 1 + int(points[len(points)-1].T/width)
}

// width is how many seconds a column has.
func (c *course) width() float64 { return c.WidthSeconds * float64(c.join) }

// values are the largest of each column, unknown where there is none.
func (c *course) values(s series) []float64 {
	out := make([]float64, c.columns)
	for i := range out {
		out[i] = unknown
	}
	points := c.Points
	if s.past {
		points = c.before.Points
	}
	for i := range points {
		if at := int(points[i].T / c.width()); at >= 0 && at < len(out) {
			out[at] = math.Max(out[at], s.of(&points[i]))
		}
	}
	return out
}

// chart draws series over one another; limit is where the dashed line is, 0 for none.
func (c *course) chart(name, note string, limit float64, limitName string, all ...series) (out chart, worth bool) {
	out = chart{Name: name, Note: note, Width: c.columns, LimitName: limitName, Marks: c.marks, Times: c.times()}
	top := limit
	values := make([][]float64, len(all))
	for i, s := range all {
		values[i] = c.values(s)
		for _, v := range values[i] {
			top = math.Max(top, v)
			worth = worth || v > 0
		}
	}
	if top = round(top); top <= limit { // the line is to be seen
		top = round(limit * 1.05)
	}
	var said []string
	for i, s := range all {
		most := 0.
		for _, v := range values[i] {
			most = math.Max(most, v)
		}
		l := layer{Class: s.class, Name: s.name, Most: figure(most), Line: s.line}
		if s.line {
			l.Path = line(values[i], top)
		} else {
			l.Path = area(values[i], top)
		}
		out.Layers = append(out.Layers, l)
		said = append(said, fmt.Sprintf("%s at most %s", s.name, l.Most))
	}
	out.Top, out.Middle = figure(top), figure(top/2)
	if limit > 0 {
		out.Limit = at(limit, top)
	}
	out.Text = name + ": " + strings.Join(said, ", ")
	for _, m := range out.Marks {
		out.Text += "; " + m.Name
	}
	return out, worth
}

// mark adds one, this many seconds after the run's begin.
func (c *course) mark(class, name string, at float64) {
	x := math.Min(at/c.width(), float64(c.columns))
	share := x / float64(c.columns)
	left := share > .5 // its name stands left of it, and is placed from the right
	where := share
	if left {
		where = 1 - share
	}
	c.marks = append(c.marks, mark{
		X: strconv.FormatFloat(x, 'f', 2, 64), Class: class, Name: name + " after " + seconds(at),
		Percent: strconv.FormatFloat(100*where, 'f', 1, 64), Left: left,
	})
}

// times are those of the horizontal axis, since the run's begin, at round numbers.
func (c *course) times() (out []tick) {
	whole := float64(c.columns) * c.width()
	steps := []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if whole/s <= maxTicks {
			step = s
			break
		}
	}
	step = math.Max(step, math.Ceil(whole/maxTicks/step)*step)
	for at := 0.; at <= whole*.97; at += step {
		text := strconv.FormatFloat(at, 'f', -1, 64) + " s"
		if at > 0 && step >= 60 {
			text = strconv.FormatFloat(at/60, 'f', -1, 64) + " min"
		}
		out = append(out, tick{strconv.FormatFloat(100*at/whole, 'f', 2, 64), text})
	}
	return out
}

// round is the next number of which the half is easy to read, too.
func round(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8} {
		if v <= n*unit*1.0000001 {
			return n * unit
		}
	}
	return 10 * unit
}

func area(values []float64, top float64) string {
	var b strings.Builder
	open := false
	end := func() {
		if open {
			b.WriteString("V" + strconv.Itoa(height) + "Z")
		}
	}
	for i, v := range values {
		if v < 0 {
			end()
			open = false
			continue
		}
		if !open {
			fmt.Fprintf(&b, "M%d %d", i, height)
		}
		open = true
		fmt.Fprintf(&b, "V%sH%d", at(v, top), i+1)
	}
	end()
	return b.String()
}

// line steps from value to value, interrupted where one is not known.
func line(values []float64, top float64) string {
	var b strings.Builder
	open := false
	for i, v := range values {
		if v < 0 {
			open = false
			continue
		}
		if !open {
			fmt.Fprintf(&b, "M%d %s", i, at(v, top))
		} else {
			b.WriteString("V" + at(v, top))
		}
		open = true
		fmt.Fprintf(&b, "H%d", i+1)
	}
	return b.String()
}

// at is where a value stands, from the top of the chart.
func at(v, top float64) string {
	return strconv.FormatFloat(height-(height-2)*math.Min(v/top, 1), 'f', 1, 64)
}

func figure(v float64) string {
	switch {
	case v >= 100:
		return phrase.Number(int(math.Ceil(v)))
	case v >= 10 || v == math.Trunc(v):
		return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func number[T int | uint64](n *T) float64 {
	if n == nil {
		return unknown
	}
	return float64(*n)
}
