package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// End writes what is left of it all once the screen is closed: the worst moment of
// each listener that had a bad one, and its losses since the start.
func (f *Frames) End(w io.Writer) error {
	s := newScreen(f.options)
	quiet := 0
	for _, t := range f.past.byAddress() {
		if t.worst.Verdict.Status == model.StatusOK {
			quiet++
			continue
		}
		s.end(t)
	}
	if quiet > 0 {
		s.paragraph(0, span{plural(quiet, "listener was", "listeners were") + " ok all the time.", good})
	}
	if _, err := io.WriteString(w, s.b.String()); err != nil {
		return fmt.Errorf("render: watch: %w", err)
	}
	return nil
}

func (s *screen) end(t *track) {
	l := t.worst
	l.Verdict.Summary = "At " + t.worstAt.Format(time.TimeOnly) + ": " + l.Verdict.Summary
	listenerText{s, &l}.verdict()
	if l.Listening() {
		s.paragraph(indent, span{"Since the start: " + t.sum() + ".", dim})
	}
	s.blank()
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
		clients := model.Clients{ClientTotals: *total.Clients}
		if n := clients.TurnedAway(); n > 0 {
			parts = append(parts, plural(n, "client", "clients")+" turned away")
		}
		if n := clients.Outcomes[model.ClientDelayed]; n > 0 {
			parts = append(parts, plural(n, "client", "clients")+" let in late")
		}
	}
	parts = append(parts, plural(t.dropped, "packet", "packets")+" dropped")
	if n := total.AbandonedRequests; n > 0 {
		parts = append(parts, "about "+plural(n, "request", "requests")+" abandoned")
	}
	if n := total.QueueResets; n > 0 {
		parts = append(parts, plural(n, "queued connection", "queued connections")+" reset")
	}
	if full := time.Duration(total.FullSeconds * float64(time.Second)); full > 0 {
		parts = append(parts, "the accept queue full for "+howLong(full))
	}
	return strings.Join(parts, ", ")
}
