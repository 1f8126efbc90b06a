// Package fleetreport draws the listeners of all agents (api.Fleet) as a table, the worst first.
package fleetreport

import (
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// fleetNarrow is the least that a name has room for before others are cut.
const fleetNarrow = 16

// JSON writes the listeners of all agents as one JSON document.
func JSON(w io.Writer, f *api.Fleet) error { return render.Document(w, f, "  ") }

// Text writes them as a table, one line each, the worst first.
func Text(w io.Writer, f *api.Fleet, o render.TextOptions) error {
	s := term.New(o.Width, o.Color)
	s.Paragraph(0, term.Bold.Of(fleetTotal(f)))
	for _, note := range fleetNotes(f) {
		s.Paragraph(0, term.Warn.Of(note))
	}
	s.Blank()
	fleetText{s}.rows(f.Listeners)
	if f.Omitted > 0 {
		s.Paragraph(1, term.Dim.Of(phrase.Count(f.Omitted, "more listener")+": -n lists more, --namespace selects"))
	}
	return s.Write(w, "fleet")
}

// fleetTotal is "1 losing, 14,999 ok: 15,000 listeners of 250 agents at 2026-05-04T03:12:00Z".
func fleetTotal(f *api.Fleet) string {
	var parts []string
	total := 0
	for st := model.NumStatuses - 1; st >= 0; st-- {
		if n := f.Counts[st.String()]; n > 0 {
			parts = append(parts, phrase.Number(n)+" "+st.String())
			total += n
		}
	}
	return strings.Join(parts, ", ") + ": " + phrase.Count(total, "listener") + " of " + phrase.Count(f.Agents, "agent") + " at " + f.Time.Format(time.RFC3339)
}

// fleetNotes are what makes the table less than it seems.
func fleetNotes(f *api.Fleet) (notes []string) {
	if f.AgentsNotScraped > 0 {
		notes = append(notes, phrase.Count(f.AgentsNotScraped, "agent")+" cannot be scraped: what "+phrase.Verb(f.AgentsNotScraped, "it watches", "they watch")+" is not known.")
	}
	if !f.FromRules {
		notes = append(notes, "The recording rules have left nothing (deploy/prometheus/fleet.rules.yml): the agents' own series were asked, which is slow with thousands of listeners.")
	}
	for _, w := range f.Warnings {
		notes = append(notes, "The server warns: "+model.Printable(w))
	}
	return notes
}

// fleetText is a table of listeners that are not of this machine.
type fleetText struct{ *term.Screen }

// fleetColumn is one column of it.
type fleetColumn struct {
	title  string
	cell   func(*api.FleetListener) string
	number bool
}

const fleetWho = 1 // the column that is cut where there is no room

// columns are all that there is room for: a narrow screen has the port instead of the
// address, and no queue.
func (s fleetText) columns() []fleetColumn {
	all := []fleetColumn{
		{"", func(l *api.FleetListener) string { return l.Status }, false},
		{"who", fleetName, false},
		{"listener", fleetAddress, false},
		{"queue", func(l *api.FleetListener) string { return fleetStage(l.AcceptQueue) }, true},
		{"connections", func(l *api.FleetListener) string { return fleetStage(l.Connections) }, true},
		{"threads", func(l *api.FleetListener) string { return fleetStage(l.Threads) }, true},
		{"turned away", fleetAway, true},
		{"why", fleetWhy, false},
	}
	if s.narrow() {
		all[2] = fleetColumn{"port", fleetPort, false}
		all = append(all[:3], all[4:]...)
	}
	return all
}

func (s fleetText) narrow() bool { return s.Width < 110 }

func (s fleetText) rows(ls []api.FleetListener) {
	columns := s.columns()
	rows := make([][]string, len(ls)+1)
	widths := make([]int, len(columns))
	for col, c := range columns {
		rows[0] = append(rows[0], c.title)
		for i := range ls {
			rows[i+1] = append(rows[i+1], c.cell(&ls[i]))
		}
		for _, r := range rows {
			widths[col] = max(widths[col], lipgloss.Width(r[col]))
		}
	}
	gap := 2
	if s.narrow() {
		gap = 1
	}
	widths[fleetWho] = max(min(widths[fleetWho], widths[fleetWho]+s.Width-term.TableWidth(widths, gap)), fleetNarrow)
	for i, r := range rows {
		first, others := term.Dim, term.Dim
		if i > 0 {
			first, others = term.StatusStyle(term.StatusNamed(ls[i-1].Status)), term.Plain
		}
		var spans []term.Span
		for col, cell := range r {
			switch {
			case col == fleetWho:
				cell = term.PadRight(cutFront(cell, widths[col]), widths[col])
			case columns[col].number:
				cell = term.PadLeft(cell, widths[col])
			case col < len(r)-1:
				cell = term.PadRight(cell, widths[col])
			}
			st := others
			if col == 0 {
				st = first
			} else {
				spans = append(spans, term.Text(term.Blanks(gap)))
			}
			spans = append(spans, st.Of(cell))
		}
		s.Line(spans...)
	}
}

// cutFront cuts the front away: names of pods differ at their ends.
func cutFront(text string, columns int) string {
	if lipgloss.Width(text) <= columns {
		return text
	}
	r := []rune(text)
	for len(r) > 0 && lipgloss.Width(string(r))+1 > columns {
		r = r[1:]
	}
	return "…" + string(r)
}

func fleetAway(l *api.FleetListener) string {
	if l.ClientsTurnedAway == nil {
		return "n/a"
	}
	return phrase.Number(*l.ClientsTurnedAway)
}

func fleetWhy(l *api.FleetListener) string {
	if l.Status == model.StatusOK.String() {
		return ""
	}
	return term.Printable(l.Cause)
}

func fleetAddress(l *api.FleetListener) string {
	if l.Address == "" {
		return fleetPort(l)
	}
	return term.Printable(l.Address)
}

func fleetPort(l *api.FleetListener) string { return ":" + strconv.Itoa(int(l.Port)) }

// fleetName is the pod, else the process and its host.
func fleetName(l *api.FleetListener) string {
	who := l.Process
	host := l.Node
	if host == "" {
		host = l.Instance
		if name, _, err := net.SplitHostPort(host); err == nil && name != "" {
			host = name
		}
	}
	switch {
	case l.Pod != "":
		who = l.Namespace + "/" + l.Pod
	case who == "" && l.PodUID != "":
		who = "pod " + l.PodUID + " on " + host
	case who == "":
		who = host
	default:
		who += " on " + host
	}
	if l.Cluster != "" {
		who = l.Cluster + ": " + who
	}
	return term.Printable(who)
}

func fleetStage(st *api.FleetStage) string {
	switch {
	case st == nil || st.Used == nil:
		return "n/a"
	case st.Max == nil:
		return phrase.Number(*st.Used)
	}
	return phrase.Number(*st.Used) + "/" + phrase.Number(*st.Max)
}
