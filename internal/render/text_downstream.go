package render

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// shownPeers is how many peers the screen has room for.
const shownPeers = 4

// downstream are the peers that requests are in flight to; those that nothing is
// asked of are not worth a line.
func (s ListenerText) downstream() {
	if s.L.Process == nil || s.L.Process.Downstream == nil {
		return
	}
	d := s.L.Process.Downstream
	title := "waits for"
	for i := range d.Peers {
		p := &d.Peers[i]
		if p.InFlight+p.Connecting == 0 {
			continue
		}
		if i == shownPeers {
			s.Row(term.Label(title), term.Dim.Of("and more"))
			title = ""
			break
		}
		s.Row(term.Label(title), peerSpans(p)...)
		title = ""
	}
	if n := d.ForClients(s.L); n > 0 {
		s.Row(term.Label(title), term.Text("clients that do not take their responses"), term.Dim.Of(term.Dot), term.Text(phrase.Count(n, "thread")))
		title = ""
	}
	if n := d.Locked(s.L); n > 0 {
		s.Row(term.Label(title), term.Text("a lock, a pool or a timer"), term.Dim.Of(term.Dot), term.Text(phrase.Count(n, "thread")))
	}
}

func peerSpans(p *model.Peer) []term.Span {
	name := p.Address.String()
	if p.Name != "" {
		name += " (" + term.Printable(p.Name)
		if p.ByPort {
			name += ", by its port"
		}
		name += ")"
	}
	spans := []term.Span{term.Bold.Of(name), term.Dim.Of(term.Dot)}
	spans = append(spans, term.Text(phrase.Number(p.InFlight)+" of "+phrase.Count(p.Connections, "connection")+" in flight"))
	if p.InFlight > 0 {
		spans = append(spans, term.Dim.Of(term.Dot), term.Text("oldest "+term.HowLong(p.Oldest)))
	}
	if p.Workers != nil && *p.Workers > 0 {
		spans = append(spans, term.Dim.Of(term.Dot), term.Text(phrase.Count(*p.Workers, "thread")))
	}
	if p.Connecting > 0 {
		spans = append(spans, term.Dim.Of(term.Dot), term.Warn.Of(phrase.Number(p.Connecting)+" without an answer to their SYN"))
	}
	if p.Background != nil && *p.Background > 0 {
		spans = append(spans, term.Dim.Of(term.Dot), term.Dim.Of(phrase.Number(*p.Background)+" also at rest"))
	}
	if p.Pool != nil {
		spans = append(spans, term.Dim.Of(term.Dot), term.Dim.Of(phrase.Sprintf("pool of %d", p.Pool.Size.Value)))
	}
	return spans
}
