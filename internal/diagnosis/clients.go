package diagnosis

import (
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// WithClients is a verdict that says how many clients are behind the packets,
// and whether they are an attack.
func WithClients(v model.Verdict, c *model.Clients) model.Verdict {
	if said := clientsPhrase(c); said != "" && v.Status >= model.StatusLosing {
		v.Summary = phrase.Capital(said) + ". " + v.Summary
	}
	v.Findings = slices.Clone(v.Findings)
	if c.Flood != nil {
		v.Findings = append(v.Findings, floodFinding(c.Flood))
	}
	if c.TurnedAway() > 0 && c.Balancer != nil {
		v.Findings = append(v.Findings, balancerFinding(c.Balancer))
	}
	return v
}

// clientsPhrase is empty where nobody was turned away, delayed, or waits.
func clientsPhrase(c *model.Clients) string {
	var parts []string
	add := func(n uint64, one, many string) {
		if n > 0 {
			parts = append(parts, phrase.Sprintf("%s %s", phrase.Count(n, "client"), phrase.Verb(n, one, many)))
		}
	}
	add(c.Outcomes[model.ClientGaveUp], "gave up", "gave up")
	add(c.Outcomes[model.ClientRefused], "was refused", "were refused")
	add(c.Outcomes[model.ClientReset], "was reset", "were reset")
	add(c.Outcomes[model.ClientStalled], "was left without an answer after connecting", "were left without an answer after connecting")
	if n := c.Outcomes[model.ClientDelayed]; n > 0 && c.Delays.Count > 0 {
		mean := time.Duration(c.Delays.Sum / float64(c.Delays.Count) * float64(time.Second))
		parts = append(parts, phrase.Sprintf("%s %s let in late, after %s on average", phrase.Count(n, "client"), phrase.Verb(n, "was", "were"), phrase.Seconds(mean)))
	}
	said := strings.Join(parts, ", ")
	if said != "" {
		said += observedFor(c)
	}
	if n := c.Waiting + c.Stalling; n > 0 {
		return strings.TrimPrefix(said+phrase.Sprintf("; %s still %s to get in", phrase.Count(n, "client"), phrase.Verb(n, "tries", "try")), "; ")
	}
	return said
}

// observedFor says which time the numbers span.
func observedFor(c *model.Clients) string {
	if c.Observed <= 0 {
		return ""
	}
	return " in the last " + phrase.Seconds(c.Observed)
}

func floodFinding(f *model.ClientFlood) model.Finding {
	return model.Finding{
		Code: "syn_flood", Severity: model.SeverityCritical,
		Evidence: phrase.Sprintf("%d single SYNs from about %d addresses within %s, none of which answered: a SYN flood with spoofed addresses, no burst of clients.",
			f.Attempts, f.Sources, phrase.Seconds(f.Period)),
		Advice: "Leave net.ipv4.tcp_syncookies at 1 and filter in front of this machine. Larger queues, more connections or threads do not help: nobody is behind these SYNs.",
	}
}

func balancerFinding(b *model.ClientSource) model.Finding {
	return model.Finding{
		Code: "one_source", Severity: model.SeverityInfo,
		Evidence: phrase.Sprintf("At least half of the clients (%d) come from %v, each from a port of its own: a load balancer, a proxy or a load generator.", b.Clients, b.Addr),
		Advice:   "Its own limits and retries decide how many clients come here at once; its log names those that were turned away.",
	}
}
