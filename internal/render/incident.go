package render

import (
	"fmt"
	"io"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// Incident writes what a recording says: what happened, what clients saw, what to
// change, and how it went.
func Incident(w io.Writer, s *story.Story, o TextOptions) error {
	sc := term.New(o.Width, o.Color)
	sc.Paragraph(0, term.Bold.Of(s.Summary.Where()+": "+s.Summary.Title()))
	sc.Paragraph(0, term.Dim.Of("Incident "+term.Printable(s.Summary.ID)))
	if text := s.Incomplete(); text != "" {
		sc.Wrapped([]term.Span{term.Warn.Of("! ")}, 2, term.Warn.Of(text))
	}
	about := incidentText{sc}
	about.answer(s)
	about.section("What happened", s.Happened())
	about.section("What was lost", s.Lost())
	about.section("What clients saw", s.Clients())
	about.section("What the threads did", s.Threads())
	about.timeline(s.Events)
	about.settings(s.Settings())
	sc.Blank()
	sc.Rule()
	sc.Paragraph(0, term.Dim.Of("The worst moment, "+recording.Clock(s.Worst.At)))
	snap := s.Worst.Snapshot(&s.Header, s.Worst.Listener.Verdict)
	ListenerText{sc, &snap.Listeners[0]}.all(snap)
	return sc.Write(w, "incident")
}

// incidentText is what a recording says, on a screen.
type incidentText struct{ *term.Screen }

// answer is that of its whole length.
func (s incidentText) answer(of *story.Story) {
	a := of.Answer()
	text := AnswerText{Screen: s.Screen, L: &of.Worst.Listener}
	s.Blank()
	text.part("What", term.Bold.Of(term.Printable(a.What)))
	text.whyAndDo(&a, whole)
}

func (s incidentText) section(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	s.Blank()
	s.Line(term.Bold.Of(title))
	for _, text := range lines {
		s.Paragraph(term.Indent, term.Text(term.Printable(text)))
	}
}

func (s incidentText) timeline(events []story.Event) {
	s.Blank()
	s.Line(term.Bold.Of("Timeline (UTC)"))
	for _, e := range events {
		head := []term.Span{term.Dim.Of(e.At.UTC().Format(time.TimeOnly) + "  "), term.StatusStyle(e.Status).Of(e.Status.String())}
		if e.Cause != "" {
			head = append(head, term.Text(" "+term.Printable(string(e.Cause))))
		}
		if e.PID != 0 {
			head = append(head, term.Dim.Of(fmt.Sprintf("  process %d", e.PID)))
		}
		s.Paragraph(term.Indent, head...)
	}
}

func (s incidentText) settings(list []story.Setting) {
	if len(list) == 0 {
		return
	}
	s.Blank()
	s.Line(term.Bold.Of("Settings in force"))
	for _, one := range list {
		text := one.Name + " " + one.Value
		s.Paragraph(term.Indent, term.Text(term.Printable(text)), term.Dim.Of("  "+term.Printable(one.Source)), term.Dim.Of(" "+term.Printable(one.Note)))
	}
}
