package render

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// losses shows each figure on its own line: packets, requests and connections
// are different things and are never added up.
func (s ListenerText) losses(snap *model.Snapshot) {
	lo := s.L.Losses
	switch {
	case lo == nil && s.L.Listening():
		s.Row(term.Label("lost"), term.Dim.Of("n/a (one snapshot only; try --interval 1s)"))
		return
	case lo == nil:
		return
	}
	s.clients(lo.Clients)
	s.firstBytes(lo.Clients)
	s.holders()
	lines := lossLines(lo)
	if len(lines) == 0 {
		s.Row(term.Label("lost"), term.Good.Of("nothing in "+term.HowLong(snap.Interval)))
		return
	}
	name := term.Label("lost")
	if full := "lost in " + term.HowLong(snap.Interval); len(full) <= term.LabelWidth {
		name.Text = full
	}
	for _, line := range lines {
		s.Row(name, term.Bad.Of(line))
		name = term.Span{}
	}
	if len(lo.WorstCase) > 0 {
		s.Row(term.Label("clients may see"), term.Bad.Of(worstCase(lo.WorstCase)))
	}
}

// clients says how those ended that the packets below belong to.
func (s ListenerText) clients(c *model.Clients) {
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
		add(c.Outcomes[o], term.Spaced(o.String()))
	}
	add(c.Untracked, "not followed")
	add(c.PacketsLost, "packets not read")
	add(uint64(c.Trying()), "still trying")
	if len(parts) == 0 {
		return
	}
	how := term.Good
	if c.TurnedAway() > 0 {
		how = term.Bad
	}
	s.Row(term.Label("clients"), how.Of(strings.Join(parts, " · ")))
	came := c.Proxies
	if len(came) == 0 && c.Balancer != nil {
		came = []model.ClientSource{*c.Balancer}
	}
	if c.TurnedAway() > 0 && len(came) > 0 {
		s.Row(term.Label("came"), term.Dim.Of("most from "+sources(came)))
	}
	if c.TurnedAway() > 0 && len(c.Losers) > 0 {
		s.Row(term.Label("turned away"), term.Bad.Of("most from "+sources(c.Losers)))
	}
}

// firstBytes says how long those had waited that were answered.
func (s ListenerText) firstBytes(c *model.Clients) {
	if c == nil {
		return
	}
	if said := diagnosis.FirstBytes(c); said != "" {
		s.Row(term.Label("first byte"), term.Text(said))
	}
}

// holders are the addresses that hold most connections, where there is no room.
func (s ListenerText) holders() {
	if s.L.Connections == nil || s.L.Verdict.Status < model.StatusSaturated || len(s.L.Connections.TopPeers) == 0 {
		return
	}
	words := make([]string, len(s.L.Connections.TopPeers))
	for i, p := range s.L.Connections.TopPeers {
		words[i] = p.Address.String() + " (" + phrase.Number(p.Connections) + ")"
	}
	s.Row(term.Label("held"), term.Dim.Of("most by "+strings.Join(words, ", ")))
}

func sources(in []model.ClientSource) string {
	words := make([]string, len(in))
	for i, l := range in {
		words[i] = l.Addr.String() + " (" + phrase.Number(l.Clients) + ")"
	}
	return strings.Join(words, ", ")
}

func lossLines(lo *model.Losses) []string {
	var out []string
	var causes []model.Cause
	by := make(map[model.Cause][]model.Drops)
	for _, d := range lo.By {
		if d.Packets == 0 {
			continue
		}
		if by[d.Cause] == nil {
			causes = append(causes, d.Cause)
		}
		by[d.Cause] = append(by[d.Cause], d)
	}
	for _, c := range causes {
		out = append(out, dropLine(c, by[c]))
	}
	if lo.AbandonedRequests > 0 {
		out = append(out, "about "+phrase.Plural(lo.AbandonedRequests, "request", "requests")+" abandoned: the client closed first")
	}
	if lo.QueueResets > 0 {
		out = append(out, phrase.Plural(lo.QueueResets, "queued connection", "queued connections")+" reset when the listener closed")
	}
	if lo.Unattributed > 0 {
		out = append(out, phrase.Plural(lo.Unattributed, "more packet", "more packets")+" dropped that no listener accounts for")
	}
	return out
}

// dropLine is the packets of a cause: "24 SYN packets dropped: max_connections", where they are of several kinds
// "57 packets dropped: max_connections (24 SYN, ~14 ACK)", of
// which some are estimated.
func dropLine(cause model.Cause, drops []model.Drops) string {
	kinds := map[model.Packet]string{model.PacketSYN: "SYN", model.PacketACK: "ACK"}
	var sum uint64
	var beside []string
	for _, d := range drops {
		sum += d.Packets
		if kind := kinds[d.Packet]; kind != "" && len(drops) > 1 {
			about := map[bool]string{true: "~"}[d.Estimated]
			beside = append(beside, about+phrase.Number(d.Packets)+" "+kind)
		}
	}
	kind, only := "", drops[0]
	if len(drops) == 1 && kinds[only.Packet] != "" {
		kind = kinds[only.Packet] + " "
	}
	if len(drops) == 1 && only.Estimated {
		beside = append(beside, "estimated")
	}
	line := phrase.Plural(sum, kind+"packet", kind+"packets") + " dropped"
	if cause != model.CauseNone {
		line += ": " + term.Printable(string(cause))
	}
	if len(beside) > 0 {
		line += " (" + strings.Join(beside, ", ") + ")"
	}
	return line
}

func worstCase(in []string) string {
	words := make([]string, len(in))
	for i, w := range in {
		words[i] = term.Printable(term.Spaced(w))
	}
	return strings.Join(words, ", ")
}
