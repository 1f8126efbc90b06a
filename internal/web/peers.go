package web

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxPeers is how many peers a card has room for.
const maxPeers = 5

// peer is an address that the process has requests in flight to.
type peer struct{ Name, InFlight, Oldest, More string }

// peers are those with a request in flight, most of them first, and the heading.
// Whom nothing is asked of is not worth a line.
func peers(l *model.Listener) (heading string, out []peer) {
	if l.Process == nil || l.Process.Downstream == nil {
		return "", nil
	}
	d := l.Process.Downstream
	for i := range d.Peers {
		if p := &d.Peers[i]; p.InFlight+p.Connecting > 0 && len(out) < maxPeers {
			out = append(out, newPeer(p))
		}
	}
	if len(out) == 0 {
		return "", nil
	}
	heading = "Requests in flight, by peer"
	if d.ByUser {
		heading += " (of all processes of its user)"
	}
	if d.Partial {
		heading += ", at least"
	}
	return heading, out
}

func newPeer(p *model.Peer) peer {
	out := peer{Name: p.Address.String(), InFlight: phrase.Number(p.InFlight) + " of " + phrase.Count(p.Connections, "connection")}
	if p.Name != "" {
		out.Name += " (" + model.Printable(p.Name) + ")"
	}
	if oldest := max(p.Oldest, p.OldestConnect); oldest > 0 {
		out.Oldest = "oldest " + phrase.Seconds(oldest)
	}
	var more []string
	if p.Connecting > 0 {
		more = append(more, phrase.Number(p.Connecting)+" not connected yet")
	}
	if p.Workers != nil && *p.Workers > 0 {
		more = append(more, phrase.Count(*p.Workers, "thread"))
	}
	if p.Background != nil && *p.Background > 0 {
		more = append(more, phrase.Number(*p.Background)+" also at rest")
	}
	if p.Pool != nil {
		more = append(more, "pool of "+phrase.Number(p.Pool.Size.Value))
	}
	out.More = strings.Join(more, " · ")
	return out
}
