package diagnosis

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// beforeListener: clients get no answer, and the listener has dropped nothing of theirs:
// they are lost in front of it, in this network namespace.
func beforeListener() cause {
	return cause{
		name: model.CauseBeforeListener,
		now: rule[*judge]{
			holds: func(j *judge) certainty { return when(j.gaveUp() > 0 || j.rejected(), surely) },
			refuted: []refutation[*judge]{
				{"the listener dropped packets lately", (*judge).droppedLately},
				{"its accept queue was full", func(j *judge) bool { return j.wasFull() }},
			},
		},
		because: func(j *judge, _ model.Verdict) string {
			return " because they are lost in front of the listener: " + j.lostWhere()
		},
		evidence: func(j *judge, _ model.Verdict) string {
			return j.join("their SYNs reached this network namespace, the listener dropped none of them and had room", j.lostWhere(), j.queueNumbers())
		},
		advice: func(j *judge, _ model.Verdict) string {
			return phrase.Sentences("Look at what stands before the listener in its network namespace: "+j.lostWhere()+".", "None of Tomcat's limits has a part in it.")
		},
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			do := j.beforeSteps()
			return do, "Any of Tomcat's limits: these clients have not come that far."
		},
		book: Runbook{
			Title:     "clients are lost in front of the listener",
			Seen:      "Clients' SYNs reached the network namespace and got no answer (or a refusal), while the listener dropped none and had room. Seen by their handshakes (CAP_NET_RAW).",
			Clients:   "Connect timeouts; refused, where a firewall rejects.",
			Check:     "`nft list ruleset`, `iptables-save`; `conntrack -S`, and `net.netfilter.nf_conntrack_count` against `nf_conntrack_max`; `net.ipv4.conf.*.rp_filter`; TCP MD5 or AO. The counters that moved are named.",
			Change:    "What drops them.",
			Vain:      "Any of Tomcat's limits.",
			Holds:     "a client's SYNs were repeated and never answered, and no counter of the listener moved",
			Otherwise: "what dropped the packets",
		},
	}
}

func (j *judge) wasFull() bool {
	q := j.Now.AcceptQueue
	return q == nil || q.Full() || q.Peak != nil && *q.Peak >= q.Capacity()
}

// lostWhere is what is known of the place.
func (j *judge) lostWhere() string {
	var found []string
	for _, c := range []struct{ name, what string }{
		{"IPReversePathFilter", "the reverse path filter (rp_filter)"},
		{"TCPMD5NotFound", "TCP MD5 signatures"},
		{"TCPMD5Unexpected", "TCP MD5 signatures"},
		{"TCPMD5Failure", "TCP MD5 signatures"},
		{"TCPAOBad", "TCP-AO"},
		{"TCPAOKeyNotFound", "TCP-AO"},
	} {
		if n := j.Delta[c.name]; n > 0 {
			found = append(found, phrase.Sprintf("%s (%s +%d)", c.what, c.name, n))
		}
	}
	if count, most := j.Sysctl["nf_conntrack_count"], j.Sysctl["nf_conntrack_max"]; most > 0 && count >= most {
		found = append(found, phrase.Sprintf("connection tracking is full (nf_conntrack_count %d of %d)", count, most))
	}
	if j.rejected() {
		found = append(found, "a firewall rule that rejects with a reset")
	}
	if len(found) == 0 {
		return "a firewall rule, or connection tracking; which is not known"
	}
	return strings.Join(found, ", ")
}

func (j *judge) beforeSteps() []model.Step {
	if most := j.Sysctl["nf_conntrack_max"]; most > 0 && j.Sysctl["nf_conntrack_count"] >= most {
		return []model.Step{{
			Text: "Make room for more tracked connections", Command: phrase.Sprintf("sysctl -w net.netfilter.nf_conntrack_max=%v", 2*most),
			Setting: "net.netfilter.nf_conntrack_max", From: phrase.Sprintf("%v", most), To: phrase.Sprintf("%v", 2*most),
		}}
	}
	return []model.Step{
		command("See which rules drop or reject packets to this port, by their counters", "nft list ruleset; iptables-save -c"),
		command("See whether connection tracking drops any (insert_failed, drop)", "conntrack -S"),
	}
}
