package web

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// maxPast is how many incidents the page lists; of whoever has most the oldest are left out.
const maxPast = 20

// pastIncident is a line of the page.
type pastIncident struct {
	ID, When, Address, Status, Cause, Text, Lost string
	Going                                        bool
}

// pastIncidents are the latest incidents, those of one listener on its own page. The list has the latest first.
func pastIncidents(list []recording.Summary, c choice) (out []pastIncident) {
	var oldest []*recording.Summary // first
	for i := range slices.Backward(list) {
		if c.names(list[i].Address) {
			oldest = append(oldest, &list[i])
		}
	}
	beyond := shares.Surplus(len(oldest), maxPast, func(i int) string { return oldest[i].Owner })
	for i, s := range slices.Backward(oldest) {
		if slices.Contains(beyond, i) {
			continue
		}
		p := pastIncident{
			ID: s.ID, When: recording.Clock(s.Began), Address: s.Where(), Status: s.Status.String(),
			Cause: model.Printable(string(s.Cause)), Text: model.Printable(s.Text), Going: s.Ended.IsZero(),
		}
		p.Lost = s.Lost()
		out = append(out, p)
	}
	return out
}

// incidentView is the report of one incident.
type incidentView struct {
	Title      string
	Report     bool // a file of its own
	ID, Footer string
	Story      *story.Story
	Card       card
	Incomplete string
	Answer     model.Answer
	Short      []eventView // the first events, of the first page
	Drops      *chart      // the one chart of the first page
	Events     []eventView
	Zoom       *zoom
	Charts     *charts
	From, To   string
	Recording  string // its address at the agent
}

func footer(h *recording.Header, version string) string {
	out := "Recorded by tcpdiag " + h.Version
	if h.Host != "" {
		out += " on " + h.Host
	}
	if h.Kernel != "" {
		out += ", Linux " + h.Kernel
	}
	if version != "" {
		out += "; drawn by tcpdiag " + version
	}
	return model.Printable(out + ".")
}

type eventView struct{ At, Status, Cause, Text, Process string }

func newIncidentView(s *story.Story, version string) *incidentView {
	l := &s.Worst.Listener
	v := &incidentView{
		Title: s.Summary.Where() + ": " + s.Summary.Title(), Answer: printableAnswer(s.Answer()),
		Story: s, Card: newCard(l), Incomplete: s.Incomplete(), ID: model.Printable(s.Summary.ID), Footer: footer(&s.Header, version),
		Zoom: newZoom(s), Charts: incidentCharts(l, s.Points), Recording: "../api/v1/incidents/" + model.Printable(s.Summary.ID) + "/recording",
	}
	if n := len(s.Points); n > 0 {
		v.From, v.To = recording.Clock(time.Unix(s.Points[0].At, 0)), recording.Clock(time.Unix(s.Points[n-1].At, 0))
	}
	pid := 0
	for _, e := range s.Events {
		one := eventView{At: e.At.UTC().Format("15:04:05.0"), Status: e.Status.String(), Cause: model.Printable(string(e.Cause)), Text: model.Printable(e.Text)}
		if e.PID != 0 && pid != 0 && e.PID != pid {
			one.Process = fmt.Sprintf("process %d in place of %d", e.PID, pid)
		}
		if e.PID != 0 {
			pid = e.PID
		}
		v.Events = append(v.Events, one)
	}
	v.Short = v.Events[:min(len(v.Events), maxShort)]
	v.Drops = v.first()
	return v
}

// printableAnswer has no control characters: a recording is a stranger's file.
func printableAnswer(a model.Answer) model.Answer {
	out := model.Answer{What: Sentence(a.What), Why: Sentence(a.Why), Not: Sentence(a.Not)}
	for _, s := range a.Do[:min(len(a.Do), model.MaxSteps)] {
		out.Do = append(out.Do, model.Step{
			Text: Sentence(s.Text), Command: model.Printable(s.Command), Setting: model.Printable(s.Setting),
			File: model.Printable(s.File), From: model.Printable(s.From), To: model.Printable(s.To), Effect: Sentence(s.Effect),
		})
	}
	return out
}

// unit is a number with what it is of.
var unit = regexp.MustCompile(`(\d) (ms|s|min|h|%|KiB|MiB|GiB)([^[:alnum:]]|$)`)

// Sentence is printable, and no line ends between a number and its unit.
func Sentence(text string) string {
	return unit.ReplaceAllString(model.Printable(text), "$1\u00a0$2$3")
}

// maxShort is how many events stand on the first page.
const maxShort = 8

// first is the chart of what was lost, else the first there is.
func (v *incidentView) first() *chart {
	if v.Charts == nil || len(v.Charts.Lines) == 0 {
		return nil
	}
	for i := range v.Charts.Lines {
		if v.Charts.Lines[i].ByCause {
			return &v.Charts.Lines[i]
		}
	}
	return &v.Charts.Lines[0]
}

// incidentCharts spread the whole recording over the columns.
func incidentCharts(l *model.Listener, points []recording.Point) *charts {
	if len(points) < 2 {
		return nil
	}
	last := points[len(points)-1].At
	width := max(1, (last-points[0].At+chartColumns)/chartColumns)
	out := chartsOver(l, points, width)
	p := plot{points, width, phrase.Seconds(time.Duration(chartColumns*width) * time.Second)}
	for stage, name := range recording.Stages() {
		if c, worth := p.stage(stage, name); worth {
			out.Lines = append(out.Lines, c)
		}
	}
	if c, worth := p.inFlight(); worth {
		out.Lines = append(out.Lines, c)
	}
	return out
}

// Incident serves the report of an incident as a page.
func (s *Server) Incident(w http.ResponseWriter, story *story.Story) {
	page, err := s.pages.draw("incident", newIncidentView(story, s.options.Version))
	if err != nil {
		http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
		return
	}
	pageHeaders(w)
	_, _ = io.WriteString(w, page)
}

// IncidentReport writes the report as a file of its own.
func IncidentReport(w io.Writer, story *story.Story, version string) error {
	p, err := newPages()
	if err != nil {
		return err
	}
	v := newIncidentView(story, version)
	v.Report = true
	page, err := p.draw("incident", v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, page)
	return err
}
