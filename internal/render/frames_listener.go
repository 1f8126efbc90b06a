package render

import (
	"slices"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// watched is a listener's text with its past below the verdict.
func (s *screen) watched(on *still, l *model.Listener) {
	s.rule()
	about := listenerText{s, l}
	answerText{s, l, on.snap}.all(withoutAir)
	if of := on.past.behind(l); of != nil {
		s.blank()
		pastText{s, on.past}.chart(of)
		if !l.Listening() { // else the details begin with a blank line
			s.blank()
		}
	}
	about.details(on.snap)
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
	lane
}

// figures run from the client inwards, as the funnel does.
func figures(l *model.Listener) []figure {
	limit := func(st stage) int {
		if st.max == nil {
			return 0
		}
		return *st.max
	}
	return []figure{
		{"dropped", func(m *moment) int { return m.dropped }, lane{0, bad}},
		{"accept queue", func(m *moment) int { return m.queue }, lane{limit(acceptQueue(l)), warn}},
		{"connections", func(m *moment) int { return m.connections }, lane{limit(connections(l)), warn}},
		{"waiting", func(m *moment) int { return m.waiting }, lane{0, warn}},
		{"threads", func(m *moment) int { return m.threads }, lane{limit(threads(l)), good}},
	}
}

// pastText is what is kept of the past, on a screen.
type pastText struct {
	*screen
	h *history
}

// chart draws the latest intervals, the present on the right, each row as high as
// its limit or else its own peak, and the highest that the chart shows next to it.
func (s pastText) chart(l *model.Listener) {
	const right = 9 // "peak" and a number with its comma
	columns := min(max(s.width-textColumn-right, 8), depth)
	for _, f := range figures(l) {
		values := s.h.of(placeOf(l), columns, f.of)
		peak := slices.Max(values)
		if peak == unknown {
			continue
		}
		top := f.limit
		if top == 0 {
			top = peak
		}
		s.line(slices.Concat(
			[]span{{text: blanks(indent)}, {padRight(f.name, labelWidth+2), plain}},
			f.blocks(values, top),
			[]span{{padLeft(phrase.Number(peak), right), dim}},
		)...)
	}
	s.ago(s.h.span(columns), columns, right)
}

// ago is the chart's time scale.
func (s pastText) ago(past time.Duration, columns, right int) {
	from := "╵" + howLong(past) + " ago"
	s.line(span{text: blanks(textColumn)}, span{
		from + padLeft("now╵", columns-lipgloss.Width(from)) + padLeft("peak", right), dim,
	})
}

// list gives each listener a line, the one on the screen marked; where there is
// no room for all, those around it.
func (s tableText) list(all []*model.Listener, marked *model.Listener, room int) {
	i := slices.Index(all, marked)
	from := max(0, min(i-room/2, len(all)-room))
	s.rule()
	s.rows(all[from:min(from+room, len(all))], marked)
}
