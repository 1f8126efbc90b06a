package planreport

import (
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/plan"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// planLane is one stage over time.
type planLane struct {
	name       string
	of         func(*plan.Point) int
	term.Chart // without a limit it is as high as its own peak
}

// planLanes run from the client inwards; a lane that stays empty is left out.
func planLanes(p *plan.Plan) []planLane {
	limit := func(i int) int { return p.Stages[i].Max }
	return []planLane{
		{"trying again", func(pt *plan.Point) int { return pt.Retrying }, term.Chart{Limit: 0, Style: term.Bad}},
		{"half-open", func(pt *plan.Point) int { return pt.HalfOpen }, term.Chart{Limit: 0, Style: term.Bad}},
		{"accept queue", func(pt *plan.Point) int { return pt.AcceptQueue }, term.Chart{Limit: limit(0), Style: term.Warn}},
		{"connections", func(pt *plan.Point) int { return pt.Waiting + pt.InService }, term.Chart{Limit: limit(1), Style: term.Warn}},
		{"threads", func(pt *plan.Point) int { return pt.InService }, term.Chart{Limit: limit(2), Style: term.Good}},
		{"served", func(pt *plan.Point) int { return pt.Served }, term.Chart{Limit: 0, Style: term.Good}},
		{"failed", func(pt *plan.Point) int { return pt.Lost }, term.Chart{Limit: 0, Style: term.Bad}},
	}
}

// chart draws the stages under each other, time running to the right, each
// as high as its own limit or peak.
func (s planText) chart() {
	lanes := planLanes(s.p)
	right := lipgloss.Width(phrase.Number(s.p.Input.Requests)) + 1
	columns := max(s.Width-term.TextColumn-right, 8)
	for _, lane := range lanes {
		values, peak := lane.sample(s.p, columns)
		if peak == 0 {
			continue
		}
		top := lane.Limit
		if top == 0 {
			top = peak
		}
		s.Line(slices.Concat(
			[]term.Span{term.Text(term.Blanks(term.Indent)), term.Plain.Of(term.PadRight(lane.name, term.LabelWidth+2))},
			lane.Blocks(values, top),
			[]term.Span{term.Dim.Of(term.PadLeft(phrase.Number(peak), right))},
		)...)
	}
	s.axis(s.p.Duration, columns)
}

// sample gives each column the highest value within its time.
func (l *planLane) sample(p *plan.Plan, columns int) (values []int, peak int) {
	values = make([]int, columns)
	column := func(t time.Duration) int {
		return min(int(float64(t)/float64(max(p.Duration, 1))*float64(columns)), columns-1)
	}
	for i := range p.Timeline {
		pt := &p.Timeline[i]
		v, until := l.of(pt), columns
		if i+1 < len(p.Timeline) {
			until = column(p.Timeline[i+1].T)
		}
		from := column(pt.T)
		if i+1 == len(p.Timeline) && i > 0 && l.of(pt) < values[from] {
			break // the last moment, at which everything is empty, has no column of its own
		}
		for c := from; c < max(until, from+1); c++ {
			values[c] = max(values[c], v)
		}
		peak = max(peak, v)
	}
	return values, peak
}

// axis is the time scale: as many round marks as fit.
func (s planText) axis(total time.Duration, columns int) {
	step := planStep(total, max(columns/12, 1))
	var axis strings.Builder
	used := 0
	for t := time.Duration(0); t <= total; t += step {
		c := int(float64(t) / float64(max(total, 1)) * float64(columns))
		mark := "╵" + planMark(t)
		if c+lipgloss.Width(mark) > s.Width-term.TextColumn {
			break
		}
		axis.WriteString(term.Blanks(c-used) + mark)
		used = c + lipgloss.Width(mark)
	}
	s.Line(term.Text(term.Blanks(term.TextColumn)), term.Dim.Of(axis.String()))
}

func planMark(t time.Duration) string {
	if t == 0 {
		return "0"
	}
	return term.HowLong(t)
}

// planStep is a round time of which at most n fit.
func planStep(total time.Duration, n int) time.Duration {
	for unit := time.Millisecond; ; unit *= 10 {
		for _, k := range []time.Duration{1, 2, 5} {
			if total/(k*unit) <= time.Duration(n) {
				return k * unit
			}
		}
	}
}
