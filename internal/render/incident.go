package render

import (
	"fmt"
	"io"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident"
)

// Incident writes what a recording says: what happened, what clients saw, what to
// change, and how it went.
func Incident(w io.Writer, s *incident.Story, o TextOptions) error {
	sc := newScreen(o)
	sc.paragraph(0, span{s.Summary.Where() + ": " + s.Summary.Title(), bold})
	sc.paragraph(0, span{"Incident " + printable(s.Summary.ID), dim})
	if text := s.Incomplete(); text != "" {
		sc.wrapped([]span{{"! ", warn}}, 2, span{text, warn})
	}
	about := incidentText{sc}
	about.section("What happened", s.Happened())
	about.section("What was lost", s.Lost())
	about.section("What clients saw", s.Clients())
	about.section("What the threads did", s.Threads())
	about.timeline(s.Events)
	about.settings(s.Settings())
	sc.blank()
	sc.rule()
	sc.paragraph(0, span{"The worst moment, " + incident.Clock(s.Worst.At), dim})
	snap := s.Worst.Snapshot(&s.Header, s.Worst.Listener.Verdict)
	listenerText{sc, &snap.Listeners[0]}.all(snap)
	if _, err := io.WriteString(w, sc.b.String()); err != nil {
		return fmt.Errorf("render: incident: %w", err)
	}
	return nil
}

// incidentText is what a recording says, on a screen.
type incidentText struct{ *screen }

func (s incidentText) section(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	s.blank()
	s.line(span{title, bold})
	for _, text := range lines {
		s.paragraph(indent, span{text: printable(text)})
	}
}

func (s incidentText) timeline(events []incident.Event) {
	s.blank()
	s.line(span{"Timeline (UTC)", bold})
	for _, e := range events {
		head := []span{{e.At.UTC().Format(time.TimeOnly) + "  ", dim}, {e.Status.String(), statusStyle(e.Status)}}
		if e.Cause != "" {
			head = append(head, span{text: " " + printable(string(e.Cause))})
		}
		if e.PID != 0 {
			head = append(head, span{fmt.Sprintf("  process %d", e.PID), dim})
		}
		s.paragraph(indent, head...)
	}
}

func (s incidentText) settings(list []incident.Setting) {
	if len(list) == 0 {
		return
	}
	s.blank()
	s.line(span{"Settings in force", bold})
	for _, one := range list {
		text := one.Name + " " + one.Value
		s.paragraph(indent, span{text: printable(text)}, span{"  " + printable(one.Source), dim}, span{" " + printable(one.Note), dim})
	}
}
