package render

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// shownPeers is how many peers the screen has room for.
const shownPeers = 4

// downstream are the peers that requests are in flight to; those that nothing is
// asked of are not worth a line.
func (s listenerText) downstream() {
	if s.l.Process == nil || s.l.Process.Downstream == nil {
		return
	}
	d := s.l.Process.Downstream
	title := "waits for"
	for i := range d.Peers {
		p := &d.Peers[i]
		if p.InFlight+p.Connecting == 0 {
			continue
		}
		if i == shownPeers {
			s.row(label(title), span{"and more", dim})
			title = ""
			break
		}
		s.row(label(title), peerSpans(p)...)
		title = ""
	}
	if n := d.Locked(s.l); n > 0 {
		s.row(label(title), span{text: "a lock, a pool or a timer"}, span{dot, dim}, span{text: phrase.Count(n, "thread")})
	}
}

func peerSpans(p *model.Peer) []span {
	name := p.Address.String()
	if p.Name != "" {
		name += " (" + printable(p.Name)
		if p.ByPort {
			name += ", by its port"
		}
		name += ")"
	}
	spans := []span{{name, bold}, {dot, dim}}
	spans = append(spans, span{text: phrase.Number(p.InFlight) + " of " + phrase.Count(p.Connections, "connection") + " in flight"})
	if p.InFlight > 0 {
		spans = append(spans, span{dot, dim}, span{text: "oldest " + howLong(p.Oldest)})
	}
	if p.Workers != nil && *p.Workers > 0 {
		spans = append(spans, span{dot, dim}, span{text: phrase.Count(*p.Workers, "thread")})
	}
	if p.Connecting > 0 {
		spans = append(spans, span{dot, dim}, span{phrase.Number(p.Connecting) + " without an answer to their SYN", warn})
	}
	if p.Background != nil && *p.Background > 0 {
		spans = append(spans, span{dot, dim}, span{phrase.Number(*p.Background) + " also at rest", dim})
	}
	if p.Pool != nil {
		spans = append(spans, span{dot, dim}, span{phrase.Sprintf("pool of %d", p.Pool.Size.Value), dim})
	}
	return spans
}
