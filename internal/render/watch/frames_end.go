package watch

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// End writes what is left of it all once the screen is closed: the worst moment of
// each listener that had a bad one, and its losses since the start.
func (f *Frames) End(w io.Writer) error {
	s := term.New(f.options.Width, f.options.Color)
	quiet := 0
	for _, t := range f.past.byAddress() {
		if t.worst.Verdict.Status == model.StatusOK {
			quiet++
			continue
		}
		ended(s, t)
	}
	if quiet > 0 {
		s.Paragraph(0, term.Good.Of(phrase.Plural(quiet, "listener was", "listeners were")+" ok all the time."))
	}
	return s.Write(w, "watch")
}

func ended(s *term.Screen, t *track) {
	l := t.worst
	l.Verdict.Summary = "At " + t.worstAt.Format(time.TimeOnly) + ": " + l.Verdict.Summary
	render.ListenerText{Screen: s, L: &l}.Verdict()
	switch {
	case l.Listening():
		s.Paragraph(term.Indent, term.Dim.Of("Since the start: "+t.sum()+"."))
	case t.refused > 0:
		s.Paragraph(term.Indent, term.Dim.Of("Since the start: "+phrase.Count(t.refused, "client")+" refused."))
	}
	s.Blank()
}

func (h *history) byAddress() []*track {
	out := make([]*track, 0, len(h.tracks))
	for _, t := range h.tracks {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *track) int { return model.CompareAddress(&a.worst, &b.worst) })
	return out
}

// sum is what was lost since the start. Packets, requests and connections are
// shown one by one: they are never added up.
func (t *track) sum() string {
	total := &t.totals
	var parts []string
	if total.Clients != nil {
		clients, proxies := model.Clients{ClientTotals: *total.Clients}, 0
		if worst := t.worst.Losses; worst != nil && worst.Clients != nil { // as its sentence calls them
			proxies = len(worst.Clients.Proxies)
		}
		noun, _ := diagnosis.Callers(proxies)
		if n := clients.TurnedAway() + t.refused; n > 0 {
			parts = append(parts, phrase.Count(n, noun)+" turned away")
		}
		if n := clients.Outcomes[model.ClientDelayed]; n > 0 {
			parts = append(parts, phrase.Count(n, noun)+" let in late")
		}
	}
	parts = append(parts, phrase.Plural(t.dropped, "packet", "packets")+" dropped")
	if n := total.AbandonedRequests; n > 0 {
		parts = append(parts, "about "+phrase.Plural(n, "request", "requests")+" abandoned")
	}
	if n := total.QueueResets; n > 0 {
		parts = append(parts, phrase.Plural(n, "queued connection", "queued connections")+" reset")
	}
	if full := time.Duration(total.FullSeconds * float64(time.Second)); full > 0 {
		parts = append(parts, "the accept queue full for "+term.HowLong(full))
	}
	return strings.Join(parts, ", ")
}
