package render

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// losses shows each figure on its own line: packets, requests and connections
// are different things and are never added up.
func (s listenerText) losses(snap *model.Snapshot) {
	lo := s.l.Losses
	switch {
	case lo == nil && s.l.Listening():
		s.row(label("lost"), span{"n/a (one snapshot only; try --interval 1s)", dim})
		return
	case lo == nil:
		return
	}
	s.clients(lo.Clients)
	s.holders()
	lines := lossLines(lo)
	if len(lines) == 0 {
		s.row(label("lost"), span{"nothing in " + howLong(snap.Interval), good})
		return
	}
	name := label("lost")
	if full := "lost in " + howLong(snap.Interval); len(full) <= labelWidth {
		name.text = full
	}
	for _, line := range lines {
		s.row(name, span{line, bad})
		name = span{}
	}
	if len(lo.WorstCase) > 0 {
		s.row(label("clients may see"), span{worstCase(lo.WorstCase), bad})
	}
}

// clients says how those ended that the packets below belong to.
func (s listenerText) clients(c *model.Clients) {
	if c == nil {
		return
	}
	var parts []string
	add := func(n uint64, what string) {
		if n > 0 {
			parts = append(parts, phrase.Number(n)+" "+what)
		}
	}
	for o := range model.NumClientOutcomes {
		add(c.Outcomes[o], spaced(o.String()))
	}
	add(c.Untracked, "not followed")
	add(c.PacketsLost, "packets not read")
	add(uint64(c.Waiting+c.Stalling), "still trying")
	if len(parts) == 0 {
		return
	}
	how := good
	if c.TurnedAway() > 0 {
		how = bad
	}
	s.row(label("clients"), span{strings.Join(parts, " · "), how})
	if c.TurnedAway() > 0 && c.Balancer != nil {
		s.row(label("came"), span{"most from " + c.Balancer.Addr.String() + " (" + phrase.Number(c.Balancer.Clients) + ")", dim})
	}
	if c.TurnedAway() > 0 && len(c.Losers) > 0 {
		s.row(label("turned away"), span{"most from " + losers(c.Losers), bad})
	}
}

// holders are the addresses that hold most connections, where there is no room.
func (s listenerText) holders() {
	if s.l.Connections == nil || s.l.Verdict.Status < model.StatusSaturated || len(s.l.Connections.TopPeers) == 0 {
		return
	}
	words := make([]string, len(s.l.Connections.TopPeers))
	for i, p := range s.l.Connections.TopPeers {
		words[i] = p.Address.String() + " (" + phrase.Number(p.Connections) + ")"
	}
	s.row(label("held"), span{"most by " + strings.Join(words, ", "), dim})
}

func losers(in []model.ClientSource) string {
	words := make([]string, len(in))
	for i, l := range in {
		words[i] = l.Addr.String() + " (" + phrase.Number(l.Clients) + ")"
	}
	return strings.Join(words, ", ")
}

func lossLines(lo *model.Losses) []string {
	var out []string
	for _, d := range lo.By {
		if d.Packets > 0 {
			out = append(out, dropLine(d))
		}
	}
	if lo.AbandonedRequests > 0 {
		out = append(out, "about "+plural(lo.AbandonedRequests, "request", "requests")+" abandoned: the client closed first")
	}
	if lo.QueueResets > 0 {
		out = append(out, plural(lo.QueueResets, "queued connection", "queued connections")+" reset when the listener closed")
	}
	if lo.Unattributed > 0 {
		out = append(out, plural(lo.Unattributed, "more packet", "more packets")+" dropped that no listener accounts for")
	}
	return out
}

func dropLine(d model.Drops) string {
	kind := map[model.Packet]string{model.PacketSYN: "SYN ", model.PacketACK: "ACK "}[d.Packet]
	line := plural(d.Packets, kind+"packet", kind+"packets") + " dropped"
	if d.Cause != model.CauseNone {
		line += ": " + printable(string(d.Cause))
	}
	if d.Estimated {
		line += " (estimated)"
	}
	return line
}

func worstCase(in []string) string {
	words := make([]string, len(in))
	for i, w := range in {
		words[i] = printable(spaced(w))
	}
	return strings.Join(words, ", ")
}
