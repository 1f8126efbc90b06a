package watch

import (
	"slices"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// watched is a listener's text with its past below the verdict.
func watched(s *term.Screen, on *still, l *model.Listener) {
	s.Rule()
	about := render.ListenerText{Screen: s, L: l}
	render.AnswerText{Screen: s, L: l, Snap: on.snap}.Compact()
	if of := on.past.behind(l); of != nil {
		s.Blank()
		pastText{s, on.past}.chart(of)
		if !l.Listening() { // else the details begin with a blank line
			s.Blank()
		}
	}
	about.Details(on.snap)
}

// behind is the listener whose past is shown: l, or who listened last on a port
// that is down, at its worst; nil where nobody did within what is kept.
func (h *history) behind(l *model.Listener) *model.Listener {
	if l.Listening() {
		return l
	}
	latest := h.now - depth
	var out *model.Listener
	for _, t := range h.byAddress() {
		was, at := &t.worst, t.moments[len(t.moments)-1].at
		if was.Listening() && was.Port == l.Port && was.ID.NetNS == l.ID.NetNS && at > latest {
			out, latest = was, at
		}
	}
	return out
}

// figure is a row of the chart of a listener's past.
type figure struct {
	name string
	of   func(*moment) int
	term.Chart
}

// figures run from the client inwards, as the funnel does.
func figures(l *model.Listener) []figure {
	limit := func(st render.Stage) int {
		if st.Max == nil {
			return 0
		}
		return *st.Max
	}
	return []figure{
		{"dropped", func(m *moment) int { return m.dropped }, term.Chart{Limit: 0, Style: term.Bad}},
		{"accept queue", func(m *moment) int { return m.queue }, term.Chart{Limit: limit(render.AcceptQueue(l)), Style: term.Warn}},
		{"connections", func(m *moment) int { return m.connections }, term.Chart{Limit: limit(render.Connections(l)), Style: term.Warn}},
		{"waiting", func(m *moment) int { return m.waiting }, term.Chart{Limit: 0, Style: term.Warn}},
		{"threads", func(m *moment) int { return m.threads }, term.Chart{Limit: limit(render.Threads(l)), Style: term.Good}},
	}
}

// pastText is what is kept of the past, on a screen.
type pastText struct {
	*term.Screen
	h *history
}

// chart draws the latest intervals, the present on the right, each row as high as
// its limit or else its own peak, and the highest that the chart shows next to it.
func (s pastText) chart(l *model.Listener) {
	const right = 9 // "peak" and a number with its comma
	columns := min(max(s.Width-term.TextColumn-right, 8), depth)
	for _, f := range figures(l) {
		values := s.h.of(identityOf(l), columns, f.of)
		peak := slices.Max(values)
		if peak == term.Unknown {
			continue
		}
		top := f.Limit
		if top == 0 {
			top = peak
		}
		s.Line(slices.Concat(
			[]term.Span{term.Text(term.Blanks(term.Indent)), term.Plain.Of(term.PadRight(f.name, term.LabelWidth+2))},
			f.Blocks(values, top),
			[]term.Span{term.Dim.Of(term.PadLeft(phrase.Number(peak), right))},
		)...)
	}
	s.ago(s.h.span(columns), columns, right)
}

// ago is the chart's time scale.
func (s pastText) ago(past time.Duration, columns, right int) {
	from := "╵" + term.HowLong(past) + " ago"
	s.Line(term.Text(term.Blanks(term.TextColumn)), term.Dim.Of(from+term.PadLeft("now╵", columns-lipgloss.Width(from))+term.PadLeft("peak", right)))
}

// list gives each listener a line, the one on the screen marked; where there is
// no room for all, those around it.
func list(s *term.Screen, all []*model.Listener, marked *model.Listener, room int) {
	i := slices.Index(all, marked)
	from := max(0, min(i-room/2, len(all)-room))
	s.Rule()
	render.TableText{Screen: s}.Rows(all[from:min(from+room, len(all))], marked)
}
