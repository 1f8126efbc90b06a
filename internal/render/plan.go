package render

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/plan"

	"charm.land/lipgloss/v2"
)

// PlanText writes the plan as a screen for people: what happens to the
// clients, when each stage fills and drains, why, and what would serve all.
func PlanText(w io.Writer, p *plan.Plan, o TextOptions) error {
	s := planText{newScreen(o), p}
	s.head()
	s.blank()
	s.outcomes()
	s.blank()
	s.stages()
	s.blank()
	s.chart()
	s.blank()
	s.notes()
	s.smallest()
	if _, err := io.WriteString(w, s.b.String()); err != nil {
		return fmt.Errorf("render: plan: %w", err)
	}
	return nil
}

// planText is a plan on a screen.
type planText struct {
	*screen
	p *plan.Plan
}

// head is the load, and what happens to it in one sentence.
func (s planText) head() {
	in := &s.p.Input
	load := plural(in.Requests, "client", "clients")
	if in.Rate > 0 {
		load += " at " + planNumber(in.Rate) + nbsp + "per second"
	} else if in.Requests > 1 {
		load += " at once"
	}
	limits := planThreads(in.Threads) + " · max-connections" + nbsp + planLimit(in.MaxConnections) +
		" · accept-count" + nbsp + phrase.Number(in.AcceptCount)
	if in.BackendConnections > 0 {
		limits += " · " + plural(in.BackendConnections, "backend connection", "backend connections") + " of" + nbsp + howLong(in.BackendTime)
	}
	s.paragraph(0, span{"tcpdiag plan · " + load + ", " + howLong(in.ServiceTime) + " of work each · " + limits, dim})
	badge, st := span{"FAILS", badgeBad}, bad
	switch {
	case s.p.Outcomes.Failed() > 0:
	case s.p.Retried > 0:
		badge, st = span{"HOLDS", badgeWarn}, warn
	default:
		badge, st = span{"HOLDS", badgeGood}, good
	}
	if s.color {
		badge.text = " " + badge.text + " "
	}
	s.wrapped([]span{badge, {text: "  "}}, badge.width()+2, span{s.p.Summary(), st})
}

func planNumber(f float64) string {
	if f == math.Trunc(f) {
		return phrase.Number(int(f))
	}
	return fmt.Sprintf("%.3g", f)
}

func planLimit(n int) string {
	if n < 0 {
		return "unlimited"
	}
	return phrase.Number(n)
}

// outcomes is one bar for each thing that clients may see.
func (s planText) outcomes() {
	o := s.p.Outcomes
	most := lipgloss.Width(phrase.Number(s.p.Input.Requests))
	for _, row := range []struct {
		name string
		n    int
		st   style
	}{
		{"served", o.Served, good},
		{"connect timeout", o.ConnectTimeout, bad},
		{"read timeout", o.ReadTimeout, bad},
		{"reset", o.Reset, bad},
	} {
		st := row.st
		if row.n == 0 {
			st = dim
		}
		ratio := float64(row.n) / float64(s.p.Input.Requests)
		s.line(slices.Concat(
			[]span{
				{text: blanks(indent)},
				{padRight(row.name, labelWidth+2), plain},
				{padLeft(phrase.Number(row.n), most) + "  ", bold},
			},
			bar(ratio, min(s.width-most-textColumn-11, 50), st),
			[]span{{padLeft(planShare(row.n, s.p.Input.Requests), 7), st}},
		)...)
	}
	if l := s.p.Latency; l != nil {
		s.row(label("latency"), span{text: "p50 " + howLong(l.P50) + " · p95 " + howLong(l.P95) + " · p99 " + howLong(l.P99) + " · max " + howLong(l.Max)},
			span{"of the served", dim})
	}
	s.row(label("duration"), planDuration(s.p)...)
	if s.p.Capacity != nil {
		s.row(label("capacity"), span{text: phrase.Number(*s.p.Capacity) + " clients at once"},
			span{"= " + phrase.Number(s.p.Input.MaxConnections) + " + backlog " + phrase.Number(s.p.Input.Backlog()) + " + 1", dim})
	}
}

// planDuration shows the server's time and the clients' where they differ.
func planDuration(p *plan.Plan) []span {
	out := []span{{text: howLong(p.ClientsDone)}}
	if p.Duration > p.ClientsDone {
		out = append(out, span{text: "until the last client is done,"}, span{howLong(p.Duration) + " until the server is", warn})
	}
	return out
}

// planShare says 0 % and 100 % only of nothing and of everything.
func planShare(n, of int) string {
	switch ratio := float64(n) / float64(of); {
	case n == 0:
		return "0" + nbsp + "%"
	case n == of:
		return "100" + nbsp + "%"
	case ratio < .01:
		return "<1" + nbsp + "%"
	case ratio > .99:
		return ">99" + nbsp + "%"
	default:
		return phrase.Number(int(math.Round(ratio*100))) + nbsp + "%"
	}
}

// stages is when each stage of the funnel is full.
func (s planText) stages() {
	used, most := 5, 5
	for _, st := range s.p.Stages {
		used = max(used, lipgloss.Width(phrase.Number(st.Peak)))
		most = max(most, lipgloss.Width(planMax(st)))
	}
	for _, st := range s.p.Stages {
		name := span{stageOf(st.Name), plain}
		full := planFull(st)
		if s.width < 72 { // no room for columns
			s.row(name, append([]span{{phrase.Number(st.Peak), bold}, {"/ " + planMax(st), plain}}, full...)...)
			continue
		}
		s.line(append([]span{
			{text: blanks(indent)},
			{padRight(name.text, labelWidth+2), plain},
			{padLeft(phrase.Number(st.Peak), used), bold},
			{" / ", dim},
			{padRight(planMax(st), most) + "  ", plain},
		}, full...)...)
	}
}

func planMax(st plan.Stage) string {
	if st.Max == 0 {
		return "no limit"
	}
	return phrase.Number(st.Max)
}

func planFull(st plan.Stage) []span {
	switch {
	case st.Max > 0 && st.Peak >= st.Max && st.FullFor == 0:
		return []span{{"full for a moment at " + planClock(st.FullFrom), warn}}
	case st.Max > 0 && st.Peak >= st.Max:
		text := planClock(st.FullFrom) + " to " + planClock(st.FullUntil)
		out := []span{{"FULL  ", bad}, {text, plain}}
		if gaps := st.FullUntil - st.FullFrom - st.FullFor; gaps > st.FullFor/50 {
			out = append(out, span{", " + howLong(st.FullFor) + " of it", dim})
		}
		return out
	case st.Peak == 0:
		return []span{{"empty", dim}}
	default:
		return []span{{"never full", good}}
	}
}

// planClock is a moment, to a hundredth of a second where it matters.
func planClock(d time.Duration) string {
	if d > 0 && d < 10*time.Second && d%(100*time.Millisecond) != 0 {
		return fmt.Sprintf("%.2f"+nbsp+"s", d.Seconds())
	}
	if d == 0 {
		return "0" + nbsp + "s"
	}
	return howLong(d)
}

func (s planText) notes() {
	st := warn
	if s.p.Outcomes.Failed() > 0 {
		st = bad
	}
	for _, n := range s.p.Notes() {
		s.row(span{n.Code, st}, span{text: printable(n.Text)})
		st = warn
	}
}

// planThreads names the threads, which have no limit where they are virtual.
func planThreads(n int) string {
	if n < 0 {
		return "threads without limit"
	}
	return plural(n, "thread", "threads")
}

// smallest is the least that serves everybody.
func (s planText) smallest() {
	l := s.p.Smallest
	if l == nil {
		s.row(span{"nobody fails", good}, span{"with no setting at all.", bold})
	} else {
		threads := ""
		if l.Threads > 0 {
			threads = plural(l.Threads, "thread", "threads") + " · "
		}
		if l.BackendConnections > 0 {
			threads += plural(l.BackendConnections, "backend connection", "backend connections") + " · "
		}
		s.row(span{"nobody fails", good}, span{"with " + threads + "max-connections" + nbsp + phrase.Number(l.MaxConnections) +
			" · accept-count" + nbsp + phrase.Number(l.AcceptCount), bold}, span{"or more", plain})
	}
	for _, n := range s.p.SmallestNotes() {
		s.wrapped([]span{{text: blanks(textColumn)}, {"→ ", good}}, textColumn+2, span{text: printable(n)})
	}
}
