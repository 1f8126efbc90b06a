package render

import (
	"time"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// stage is one line of the funnel.
type stage struct {
	name      string
	used, max *int
	why       string // why used or max is not known
	unlimited bool
	source    string // where max comes from
	short     string // the same for narrow screens
	detail    string // what short leaves out
	fullIn    *time.Duration
	// neverFull is for the SYN backlog: whether it is full is said by
	// counters, never by its length.
	neverFull bool
}

func (s listenerText) funnel() {
	stages := append([]stage{synBacklog(s.l), acceptQueue(s.l), connections(s.l), threads(s.l), openFiles(s.l)}, otherLimits(s.l)...)
	used, most := 5, 5
	for i := range stages {
		stages[i].fullIn = fullIn(s.l, stages[i].name)
		used = max(used, lipgloss.Width(known(stages[i].used)))
		most = max(most, lipgloss.Width(stages[i].maximum()))
	}
	var cutShort []term.Span
	for i := range stages {
		if s.stage(&stages[i], used, most) {
			cutShort = append(cutShort, term.Dim.Of(stages[i].name+": "+term.Printable(stages[i].detail)), term.Dim.Of(term.Dot))
		}
	}
	if len(cutShort) > 0 {
		s.Row(term.Label("limits set by"), cutShort[:len(cutShort)-1]...)
	}
}

// stage also says whether there was no room for a detail of the source.
func (s listenerText) stage(st *stage, used, most int) (shortened bool) {
	head := []term.Span{
		term.Text(term.Blanks(term.Indent)),
		term.Plain.Of(term.PadRight(term.Cut(st.name, term.LabelWidth), term.LabelWidth+2)),
		term.Bold.Of(term.PadLeft(known(st.used), used)),
		term.Dim.Of(" / "),
		term.Plain.Of(term.PadRight(st.maximum(), most)),
	}
	if st.used == nil || st.max == nil || *st.max <= 0 {
		note := st.source
		if st.why != "" {
			note = "(" + st.why + ")"
		}
		s.Line(append(head, term.Dim.Of("  "+term.Printable(note)))...)
		return false
	}
	ratio := float64(*st.used) / float64(*st.max)
	head = append(head, term.Text("  "))
	head = append(head, term.Bar(ratio, s.barWidth(), st.level(ratio))...)
	head = append(head, st.level(ratio).Of(term.PadLeft(st.percent(ratio), 6)))
	note, shortened := st.note(s.Width - term.Columns(head) - 2)
	s.Line(append(head, note)...)
	return shortened
}

// barWidth leaves room for the numbers and the settings' sources.
func (s listenerText) barWidth() int { return max(0, min((s.Width-52)/2, 26)) }

func (st *stage) maximum() string {
	if st.unlimited {
		return "no limit"
	}
	return known(st.max)
}

func (st *stage) level(ratio float64) term.Style {
	switch {
	case st.neverFull:
		return term.Plain
	case ratio >= 1:
		return term.Bad
	case ratio >= .8:
		return term.Warn
	default:
		return term.Good
	}
}

// percent is rounded down: 100 % is said of nothing but a full stage.
func (st *stage) percent(ratio float64) string {
	if ratio >= 1 && !st.neverFull {
		return "FULL"
	}
	if ratio > 0 && ratio < .01 {
		return "<1 %"
	}
	return phrase.Number(int(ratio*100)) + " %"
}

// note is the forecast, or else where the limit comes from: whole where it
// fits, in a word where it does not.
func (st *stage) note(room int) (note term.Span, shortened bool) {
	if st.fullIn != nil {
		return term.Warn.Of("  full in " + term.HowLong(*st.fullIn)), st.detail != ""
	}
	if text := term.Printable(st.source); lipgloss.Width(text) <= room {
		return term.Dim.Of("  " + text), false
	}
	return term.Dim.Of("  " + term.Printable(st.short)), st.detail != ""
}

// known is a number, or n/a.
func known(n *int) string {
	if n == nil {
		return "n/a"
	}
	return phrase.Number(*n)
}

func fullIn(l *model.Listener, stageName string) *time.Duration {
	for i := range l.Limits {
		if stageOf(l.Limits[i].Name) == stageName {
			return l.Limits[i].FullIn
		}
	}
	return nil
}

// stageOf is a limit's name on the screen.
func stageOf(limit string) string {
	switch limit {
	case "syn_backlog":
		return "SYN backlog"
	case "max_connections":
		return "connections"
	case "max_threads":
		return "threads"
	default:
		return term.Printable(term.Spaced(limit))
	}
}
