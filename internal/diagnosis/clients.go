package diagnosis

import (
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// AddClients puts the clients in front of what a verdict says, and says whether
// they are an attack, or all come from one source.
func AddClients(v model.Verdict, l *model.Listener, interval time.Duration) model.Verdict {
	lost := l.Losses
	if l.Lately != nil {
		lost, interval = &l.Lately.Losses, l.Lately.Span
	}
	if lost == nil || lost.Clients == nil {
		return v
	}
	c := lost.Clients
	if !l.Listening() && c.Outcomes[model.ClientRefused] > 0 {
		if v.Status == model.StatusWarning { // they may have meant another namespace, and were refused in this one
			v.Summary = inFront(c, interval, false) + v.Summary
		}
		v.Answer.What = whatIsLost(lost, int(lost.QueueResets), interval)
	}
	if v.Status >= model.StatusLosing {
		packets := lost.DroppedPackets > 0 && v.Status == model.StatusLosing && v.Cause != model.CauseBeforeListener
		v.Summary = inFront(c, interval, packets) + v.Summary
		if v.Status == model.StatusLosing {
			v.Answer.What = whatIsLost(lost, int(lost.QueueResets), interval)
		}
	}
	v.Findings = slices.Clone(v.Findings)
	if c.Flood != nil {
		v.Findings = append(v.Findings, floodFinding(c.Flood))
	}
	if c.TurnedAway() > 0 && (c.Balancer != nil || len(c.Proxies) > 0) {
		v.Findings = append(v.Findings, sourcesFinding(c))
	}
	return v
}

// whatIsLost is who was turned away: clients where their handshakes were followed, else
// packets, which are never called clients.
func whatIsLost(lost *model.Losses, resets int, interval time.Duration) string {
	if lost == nil {
		lost = &model.Losses{}
	}
	during := words.Within(interval)
	if c := lost.Clients; c != nil && c.Flood == nil && c.TurnedAway() > 0 {
		return noAnswer(c) + "."
	}
	if c := lost.Clients; c != nil && clientsWithin(c, 0) != "" {
		return phrase.Capital(clientsWithin(c, c.Observed)) + "."
	}
	var parts []string
	if n := lost.DroppedPackets; n > 0 {
		parts = append(parts, phrase.Sprintf("%s %s dropped%s: their senders try again after 1 s, or see a timeout",
			phrase.Count(n, "packet"), phrase.Verb(n, "was", "were"), during))
	}
	if resets > 0 {
		parts = append(parts, phrase.Sprintf("%s that waited in the accept queue %s reset", phrase.Count(resets, "client"), phrase.Verb(resets, "was", "were")))
	}
	return phrase.Capital(strings.Join(parts, "; ")) + "."
}

// noAnswer says how many of the clients that ended got no answer, and how: "40 of 60 clients of
// the last 10 s got no answer: 15 never got in, 25 gave up waiting inside".
func noAnswer(c *model.Clients) string {
	ended, ways, open := Ended(&c.ClientTotals), Ways(&c.ClientTotals), c.Trying()
	noun, from := Callers(len(c.Proxies))
	who := phrase.Count(ended, noun)
	switch {
	case c.TurnedAway() < ended:
		who = phrase.Number(c.TurnedAway()) + " of " + who
	case open > 0 || ended == 1:
	case ended == 2:
		who = "both " + noun + "s"
	default:
		who = "all " + who
	}
	who += from + " "
	out := who + "got no answer" + words.Within(c.Observed) + ": " + strings.Join(ways, ", ")
	if _, how, _ := strings.Cut(ways[0], " "); len(ways) == 1 {
		out = who + how
		if during := words.Within(c.Observed); during != "" {
			out = phrase.Capital(strings.TrimSpace(during)) + " " + out
		}
	}
	if open > 0 {
		out += "; " + phrase.Number(open) + " more " + phrase.Verb(open, "is", "are") + " still trying"
	}
	return phrase.Capital(out) + unsure(c, true)
}

// Callers is what clients are called, and from where they come: where proxies are in front of nearly all it is
// connections that are counted, not people. Addresses are in the JSON and on the screen only.
func Callers(proxies int) (noun, from string) {
	switch proxies {
	case 0:
		return "client", ""
	case 1:
		return "connection", ", mostly from one address,"
	}
	return "connection", ", mostly from " + phrase.Count(proxies, "address") + ","
}

// Ended are the clients that were turned away or answered: those let in are counted before they are answered,
// and answers when they come. Where answers are not seen, who was let in, and is not known to have had none, counts for one.
func Ended(t *model.ClientTotals) uint64 {
	if !t.Answers.Known {
		in := t.Outcomes[model.ClientConnected] + t.Outcomes[model.ClientDelayed]
		return t.TurnedAway() + in - min(in, t.Answers.Unanswered)
	}
	return t.TurnedAway() + t.Answers.Answered
}

// Ways are those in which clients were turned away, with how many: "15 never got in", "25 gave up waiting inside".
func Ways(t *model.ClientTotals) (out []string) {
	o, a := &t.Outcomes, &t.Answers
	for _, way := range []struct {
		n   uint64
		how string
	}{
		{o[model.ClientGaveUp], "gave up connecting"},
		{o[model.ClientStalled], "never got in"},
		{a.Unanswered - min(a.Unanswered, a.Closed), "gave up waiting inside"},
		{a.Closed, phrase.Verb(a.Closed, "was", "were") + " closed by the server"},
		{o[model.ClientReset], phrase.Verb(o[model.ClientReset], "was", "were") + " reset"},
		{o[model.ClientRefused], phrase.Verb(o[model.ClientRefused], "was", "were") + " refused"},
	} {
		if way.n > 0 {
			out = append(out, phrase.Number(way.n)+" "+way.how)
		}
	}
	return out
}

// FirstBytes says how long clients waited for the first byte of an answer: "half within 0.4 s, 95 % within 1.9 s, 99 % not
// within 30 s (120 clients, from the SYN on)". A share of less than one client is left out; "" where nothing is known.
func FirstBytes(c *model.Clients) string {
	f := c.FirstBytes()
	if f == nil {
		return ""
	}
	var parts []string
	for _, q := range []struct {
		share string
		took  float64
		least uint64
	}{{"half", f.P50Seconds, 1}, {"95 %", f.P95Seconds, 20}, {"99 %", f.P99Seconds, 100}} {
		switch took := phrase.Seconds(time.Duration(q.took * float64(time.Second))); {
		case f.Clients < q.least:
		case q.took == 0:
			parts = append(parts, q.share+" not within 30 s")
		default:
			parts = append(parts, q.share+" within "+took)
		}
	}
	return strings.Join(parts, ", ") + " (" + phrase.Count(f.Clients, "client") + ", from the SYN on)"
}

// inFront joins the clients to what comes behind them. A few words are one sentence with
// the packets of the same time, which name it.
func inFront(c *model.Clients, interval time.Duration, packets bool) string {
	observed := c.Observed
	same := observed <= interval+interval/10 && observed >= interval-interval/10
	clients := clientsWithin(c, 0)
	switch {
	case clients == "":
		return ""
	case packets && same && !strings.ContainsAny(clients, ",;"):
		return phrase.Capital(clients) + "; "
	}
	return phrase.Capital(clientsWithin(c, observed)) + ". "
}

// ClientsPhrase says what happened to those for whom there was no room: "1,707
// clients gave up connecting, 312 were let in after 1 to 7 s". It is empty where there are none.
func ClientsPhrase(c *model.Clients, noun string) string { return whatBecame(c, noun, 0) }

func clientsWithin(c *model.Clients, during time.Duration) string {
	noun, _ := Callers(len(c.Proxies))
	return whatBecame(c, noun, during)
}

// whatBecame is the same with the time in which that was, in front. Who still tries does so now.
func whatBecame(c *model.Clients, noun string, during time.Duration) string {
	var parts []string
	if c.Flood != nil {
		noun = "attempt" // of whom, if of anybody, is not known
	}
	add := func(n uint64, one, many string) {
		if n == 0 {
			return
		}
		who := phrase.Number(n)
		if len(parts) == 0 {
			who = phrase.Count(n, noun)
		}
		parts = append(parts, who+" "+phrase.Verb(n, one, many))
	}
	o := &c.Outcomes
	add(o[model.ClientGaveUp], "gave up connecting", "gave up connecting")
	add(o[model.ClientRefused], "was refused", "were refused")
	add(o[model.ClientReset], "was reset", "were reset")
	add(o[model.ClientStalled], "never got in", "never got in")
	add(c.Answers.Unanswered-min(c.Answers.Unanswered, c.Answers.Closed), "gave up waiting inside", "gave up waiting inside")
	add(c.Answers.Closed, "was closed by the server without an answer", "were closed by the server without an answer")
	when, open := strings.TrimPrefix(words.Within(during), " "), uint64(max(c.Trying(), 0))
	if when != "" {
		when += " "
	}
	late := " let in" + waited(c)
	if len(parts) == 0 && open > 0 { // who is in trouble now comes first
		add(open, "is still trying to connect", "are still trying to connect")
		if n := o[model.ClientDelayed]; n > 0 {
			parts[0] += "; " + when + phrase.Count(n, "other") + " " + phrase.Verb(n, "was", "were") + late
		}
		return parts[0] + unsure(c, true)
	}
	add(o[model.ClientDelayed], "was"+late, "were"+late)
	add(open, "is still trying", "are still trying")
	return when + strings.Join(parts, ", ") + unsure(c, len(parts) > 0)
}

// unsure is why these numbers may be others.
func unsure(c *model.Clients, any bool) string {
	switch {
	case !any:
		return ""
	case c.Flood != nil && c.Flood.Certain:
		return " (most of them of a SYN flood)"
	case c.Flood != nil:
		return " (perhaps of a SYN flood)"
	case c.PacketsLost > 0:
		return " (up to " + phrase.Number(c.PacketsLost) + " more or fewer: " + phrase.Count(c.PacketsLost, "packet") + " could not be read)"
	case manyUnclear(c):
		return " (of " + phrase.Number(c.Answers.Unclear) + " more it was not seen whether they had an answer)"
	}
	return ""
}

// manyUnclear: of more than one in a hundred it is not known whether they were answered.
func manyUnclear(c *model.Clients) bool {
	a := &c.Answers
	return a.Known && a.Unclear > 1 && 100*a.Unclear > a.Answered+a.Unanswered
}

// waited is how long the delayed clients did: " after 1 to 7 s", or on average
// where no more is known, as in older recordings.
func waited(c *model.Clients) string {
	switch {
	case c.Waits.Longest > 0:
		return " after " + Span(c.Waits)
	case c.Delays.Count > 0:
		mean := time.Duration(c.Delays.Sum / float64(c.Delays.Count) * float64(time.Second))
		return " after " + phrase.Seconds(mean) + " on average"
	}
	return " late"
}

// Span is "1 to 7 s", or "1 s" where both are nearly the same.
func Span(w model.Waits) string {
	from, to := phrase.Seconds(w.Shortest), phrase.Seconds(w.Longest)
	if from == to || w.Longest-w.Shortest <= w.Longest/10 {
		return to
	}
	number, unit, _ := strings.Cut(from, " ")
	if strings.HasSuffix(to, " "+unit) {
		from = number
	}
	return from + " to " + to
}

func floodFinding(f *model.ClientFlood) model.Finding {
	if !f.Certain {
		return model.Finding{
			Code: "syn_flood", Severity: model.SeverityWarning,
			Evidence: phrase.Sprintf("%d single SYNs from about %d addresses within %s, none of which was repeated or answered: a SYN flood with spoofed addresses, or clients whose connect timeout is below a second.",
				f.Attempts, f.Sources, phrase.Seconds(f.Period)),
			Advice: "Find out whether these addresses are clients' before anything is enlarged for them: nobody is behind a flood. Leave net.ipv4.tcp_syncookies at 1.",
		}
	}
	return model.Finding{
		Code: "syn_flood", Severity: model.SeverityCritical,
		Evidence: phrase.Sprintf("%d single SYNs from about %d addresses within %s, none of which answered: a SYN flood with spoofed addresses, no burst of clients.",
			f.Attempts, f.Sources, phrase.Seconds(f.Period)),
		Advice: "Leave net.ipv4.tcp_syncookies at 1 and filter in front of this machine. Larger queues, more connections or threads do not help: nobody is behind these SYNs.",
	}
}

// sourcesFinding says that most clients are connections of one, or a few, who stand in front of people, or in their place.
func sourcesFinding(c *model.Clients) model.Finding {
	share, from, sources := "At least half of the clients", "one address", c.Proxies
	if len(sources) > 0 {
		share = "Four of five clients or more"
	} else {
		sources = []model.ClientSource{*c.Balancer}
	}
	n := uint64(0)
	for _, s := range sources {
		n += s.Clients
	}
	if len(sources) > 1 {
		from = phrase.Count(len(sources), "address")
	}
	return model.Finding{
		Code: "one_source", Severity: model.SeverityInfo,
		Evidence: phrase.Sprintf("%s (%d) come from %s, each from a port of its own: a load balancer, a proxy or a load generator. These are its connections, not people.", share, n, from),
		Advice:   "Its own limits and retries decide how many clients come here at once; its log names those that were turned away.",
	}
}
