package render

import (
	"time"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

func (s ListenerText) funnel() {
	stages := append([]Stage{synBacklog(s.L), AcceptQueue(s.L), Connections(s.L), Threads(s.L), openFiles(s.L)}, otherLimits(s.L)...)
	used, most := 5, 5
	for i := range stages {
		stages[i].fullIn = fullIn(s.L, stages[i].name)
		used = max(used, lipgloss.Width(known(stages[i].used)))
		most = max(most, lipgloss.Width(stages[i].maximum()))
	}
	var cutShort []term.Span
	for i := range stages {
		if s.stage(&stages[i], used, most) {
			cutShort = append(cutShort, term.Dim.Of(stages[i].name+": "+term.Printable(cmpOr(stages[i].detail, stages[i].source))), term.Dim.Of(term.Dot))
		}
	}
	if len(cutShort) > 0 {
		s.Row(term.Label("limits set by"), cutShort[:len(cutShort)-1]...)
	}
}

// stage also says whether there was no room for a detail of the source.
func (s ListenerText) stage(st *Stage, used, most int) (shortened bool) {
	head := []term.Span{
		term.Text(term.Blanks(term.Indent)),
		term.Plain.Of(term.PadRight(term.Cut(st.name, term.LabelWidth), term.LabelWidth+2)),
		term.Bold.Of(term.PadLeft(known(st.used), used)),
		term.Dim.Of(" / "),
		term.Plain.Of(term.PadRight(st.maximum(), most)),
	}
	if st.used == nil || st.Max == nil || *st.Max <= 0 {
		note := st.source
		if st.why != "" {
			note = "(" + st.why + ")"
		}
		s.Line(append(head, term.Dim.Of("  "+term.Printable(note)))...)
		return false
	}
	ratio := float64(*st.used) / float64(*st.Max)
	head = append(head, term.Text("  "))
	head = append(head, term.Bar(ratio, s.barWidth(), st.level(ratio))...)
	head = append(head, st.level(ratio).Of(term.PadLeft(st.percent(ratio), 6)))
	marks := AnswerText{Screen: s.Screen, L: s.L}.marks(st)
	head = append(head, marks...)
	room := s.Width - term.Columns(head)
	note, shortened := st.note(room - 2)
	if len(marks) > 0 && term.Columns([]term.Span{note}) > room {
		s.Line(head...)
		return st.source != ""
	}
	s.Line(append(head, note)...)
	return shortened
}

// barWidth leaves room for the numbers and the settings' sources.
func (s ListenerText) barWidth() int { return max(0, min((s.Width-52)/2, 26)) }

func fullIn(l *model.Listener, stageName string) *time.Duration {
	for i := range l.Limits {
		if StageOf(l.Limits[i].Name) == stageName {
			return l.Limits[i].FullIn
		}
	}
	return nil
}
