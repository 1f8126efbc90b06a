// Package planreport draws the simulation of a load (plan.Plan): what happens to the clients,
// and each stage over time.
package planreport

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/api/plandoc"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/plan"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// Text writes the plan as a screen for people: what happens to the
// clients, when each stage fills and drains, why, and what would serve all. On a terminal it
// leaves out what there is no room for: the outcome would scroll away.
func Text(w io.Writer, p *plan.Plan, o render.TextOptions) error {
	s := draw(p, o, whole)
	for level := withoutChart; o.Height > 0 && s.Height() >= o.Height && level <= withoutZeros; level++ { // the next prompt takes a line
		s = draw(p, o, level)
	}
	return s.Write(w, "plan")
}

// What is left out of a plan.
const (
	whole = iota
	withoutChart
	withoutNotes
	withoutZeros // and without the room for clients, which is that of the stages
)

func draw(p *plan.Plan, o render.TextOptions, level int) planText {
	s := planText{term.New(o.Width, o.Color), p}
	s.head()
	s.Blank()
	s.outcomes(level < withoutZeros)
	if level < withoutZeros {
		s.Blank()
	}
	s.stages()
	s.Blank()
	if level < withoutChart {
		s.chart()
		s.Blank()
	}
	if level < withoutNotes {
		s.notes()
	}
	s.smallest()
	switch level {
	case withoutChart:
		s.Paragraph(0, term.Dim.Of(" Each stage over time has no room here: | less shows it"))
	case withoutNotes, withoutZeros:
		s.Paragraph(0, term.Dim.Of(" Each stage over time, and why it fails, have no room here: | less shows them"))
	}
	return s
}

// planText is a plan on a screen.
type planText struct {
	*term.Screen
	p *plan.Plan
}

// head is the load, and what happens to it in one sentence.
func (s planText) head() {
	in := &s.p.Input
	load := phrase.Plural(in.Requests, "client", "clients")
	if in.Rate > 0 {
		load += " at " + planNumber(in.Rate) + term.Nbsp + "per second"
	} else if in.Requests > 1 {
		load += " at once"
	}
	limits := planThreads(in.Threads) + " · max-connections" + term.Nbsp + planLimit(in.MaxConnections) +
		" · accept-count" + term.Nbsp + phrase.Number(in.AcceptCount)
	if in.BackendConnections > 0 {
		limits += " · " + phrase.Plural(in.BackendConnections, "backend connection", "backend connections") + " of" + term.Nbsp + term.HowLong(in.BackendTime)
	}
	s.Paragraph(0, term.Dim.Of("tcpdiag plan · "+load+", "+term.HowLong(in.ServiceTime)+" of work each · "+limits))
	badge, st := term.BadgeBad.Of("FAILS"), term.Bad
	switch {
	case s.p.Outcomes.Failed() > 0:
	case s.p.Retried > 0:
		badge, st = term.BadgeWarn.Of("HOLDS"), term.Warn
	default:
		badge, st = term.BadgeGood.Of("HOLDS"), term.Good
	}
	if s.Color {
		badge.Text = " " + badge.Text + " "
	}
	s.Wrapped([]term.Span{badge, term.Text("  ")}, badge.Width()+2, st.Of(s.p.Summary()))
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
func (s planText) outcomes(all bool) {
	o := s.p.Outcomes
	most := lipgloss.Width(phrase.Number(s.p.Input.Requests))
	for _, row := range []struct {
		name string
		n    int
		st   term.Style
	}{
		{"served", o.Served, term.Good},
		{"connect timeout", o.ConnectTimeout, term.Bad},
		{"read timeout", o.ReadTimeout, term.Bad},
		{"reset", o.Reset, term.Bad},
	} {
		st := row.st
		if row.n == 0 && !all {
			continue
		}
		if row.n == 0 {
			st = term.Dim
		}
		ratio := float64(row.n) / float64(s.p.Input.Requests)
		s.Line(slices.Concat(
			[]term.Span{
				term.Text(term.Blanks(term.Indent)),
				term.Plain.Of(term.PadRight(row.name, term.LabelWidth+2)),
				term.Bold.Of(term.PadLeft(phrase.Number(row.n), most) + "  "),
			},
			term.Bar(ratio, min(s.Width-most-term.TextColumn-11, 50), st),
			[]term.Span{st.Of(term.PadLeft(planPercent(row.n, s.p.Input.Requests), 7))},
		)...)
	}
	if l := s.p.Latency; l != nil {
		s.Row(term.Label("latency"), term.Text("p50 "+term.HowLong(l.P50)+" · p95 "+term.HowLong(l.P95)+" · p99 "+term.HowLong(l.P99)+" · max "+term.HowLong(l.Max)),
			term.Dim.Of("of the served"))
	}
	s.Row(term.Label("duration"), planDuration(s.p)...)
	if s.p.Capacity != nil && all {
		s.Row(term.Label("capacity"), term.Text(phrase.Number(*s.p.Capacity)+" clients at once"),
			term.Dim.Of("= "+phrase.Number(s.p.Input.MaxConnections)+" + backlog "+phrase.Number(s.p.Input.Backlog())+" + 1"))
	}
}

// planDuration shows the server's time and the clients' where they differ.
func planDuration(p *plan.Plan) []term.Span {
	out := []term.Span{term.Text(term.HowLong(p.ClientsDone))}
	if p.Duration > p.ClientsDone {
		out = append(out, term.Text("until the last client is done,"), term.Warn.Of(term.HowLong(p.Duration)+" until the server is"))
	}
	return out
}

// planPercent says 0 % and 100 % only of nothing and of everything.
func planPercent(n, of int) string {
	switch ratio := float64(n) / float64(of); {
	case n == 0:
		return "0" + term.Nbsp + "%"
	case n == of:
		return "100" + term.Nbsp + "%"
	case ratio < .01:
		return "<1" + term.Nbsp + "%"
	case ratio > .99:
		return ">99" + term.Nbsp + "%"
	default:
		return phrase.Number(int(math.Round(ratio*100))) + term.Nbsp + "%"
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
		name := term.Plain.Of(render.StageOf(st.Name))
		full := planFull(st)
		if s.Width < 72 { // no room for columns
			s.Row(name, append([]term.Span{term.Bold.Of(phrase.Number(st.Peak)), term.Plain.Of("/ " + planMax(st))}, full...)...)
			continue
		}
		s.Line(append([]term.Span{
			term.Text(term.Blanks(term.Indent)),
			term.Plain.Of(term.PadRight(name.Text, term.LabelWidth+2)),
			term.Bold.Of(term.PadLeft(phrase.Number(st.Peak), used)),
			term.Dim.Of(" / "),
			term.Plain.Of(term.PadRight(planMax(st), most) + "  "),
		}, full...)...)
	}
}

func planMax(st plan.Stage) string {
	if st.Max == 0 {
		return "no limit"
	}
	return phrase.Number(st.Max)
}

func planFull(st plan.Stage) []term.Span {
	switch {
	case st.Max > 0 && st.Peak >= st.Max && st.FullFor == 0:
		return []term.Span{term.Warn.Of("full for a moment at " + planClock(st.FullFrom))}
	case st.Max > 0 && st.Peak >= st.Max:
		text := planClock(st.FullFrom) + " to " + planClock(st.FullUntil)
		out := []term.Span{term.Bad.Of("FULL  "), term.Plain.Of(text)}
		if gaps := st.FullUntil - st.FullFrom - st.FullFor; gaps > st.FullFor/50 {
			out = append(out, term.Dim.Of(", "+term.HowLong(st.FullFor)+" of it"))
		}
		return out
	case st.Peak == 0:
		return []term.Span{term.Dim.Of("empty")}
	default:
		return []term.Span{term.Good.Of("never full")}
	}
}

// planClock is a moment, to a hundredth of a second where it matters.
func planClock(d time.Duration) string {
	if d > 0 && d < 10*time.Second && d%(100*time.Millisecond) != 0 {
		return fmt.Sprintf("%.2f"+term.Nbsp+"s", d.Seconds())
	}
	if d == 0 {
		return "0" + term.Nbsp + "s"
	}
	return term.HowLong(d)
}

func (s planText) notes() {
	st := term.Warn
	if s.p.Outcomes.Failed() > 0 {
		st = term.Bad
	}
	for _, n := range s.p.Notes() {
		s.Row(st.Of(n.Code), term.Text(term.Printable(n.Text)))
		st = term.Warn
	}
}

// planThreads names the threads, which have no limit where they are virtual.
func planThreads(n int) string {
	if n < 0 {
		return "threads without limit"
	}
	return phrase.Plural(n, "thread", "threads")
}

// smallest is the least that serves everybody.
func (s planText) smallest() {
	l := s.p.Smallest
	if l == nil {
		s.Row(term.Good.Of("nobody fails"), term.Bold.Of("with no setting at all."))
	} else {
		threads := ""
		if l.Threads > 0 {
			threads = phrase.Plural(l.Threads, "thread", "threads") + " · "
		}
		if l.BackendConnections > 0 {
			threads += phrase.Plural(l.BackendConnections, "backend connection", "backend connections") + " · "
		}
		s.Row(term.Good.Of("nobody fails"), term.Bold.Of("with "+threads+"max-connections"+term.Nbsp+phrase.Number(l.MaxConnections)+
			" · accept-count"+term.Nbsp+phrase.Number(l.AcceptCount)), term.Plain.Of("or more"))
	}
	for _, n := range s.p.SmallestNotes() {
		s.Wrapped([]term.Span{term.Text(term.Blanks(term.TextColumn)), term.Good.Of("→ ")}, term.TextColumn+2, term.Text(term.Printable(n)))
	}
}

// JSON writes the plan as one JSON document of schema plandoc.PlanSchema.
func JSON(w io.Writer, p *plan.Plan) error { return render.Document(w, plandoc.NewPlan(p), "  ") }
