package causes

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// beforeListener: clients get no answer, and the listener has dropped nothing of theirs:
// they are lost in front of it, in this network namespace; or its answers are, on their way back.
func beforeListener() Cause {
	return Cause{
		Name: model.CauseBeforeListener,
		Now: rule[*symptoms.Symptoms]{
			holds: func(s *symptoms.Symptoms) Certainty { return When(s.GaveUp()+s.StillTry() > 0 || s.Rejected(), Surely) },
			refuted: []refutation[*symptoms.Symptoms]{
				{"the listener dropped packets lately, and no clients began after that whom nothing answers, no answer reaches, and most that fail are not refused", func(s *symptoms.Symptoms) bool { return s.DroppedLately() && nothingShowsIt(s) }},
				{"its accept queue was full", func(s *symptoms.Symptoms) bool { return s.WasFull() && nothingShowsIt(s) }},
			},
		},
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.MostlyUnreached() {
				return " because the server's SYN-ACKs do not reach them: they are lost " + wayBack
			}
			return " because they are lost in front of the listener: " + lostWhere(s)
		},
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.MostlyUnreached() {
				return words.Join(phrase.Sprintf("SYN-ACKs left this network namespace for %s, which repeated the SYN all the same", phrase.Count(s.Unreached(), "client")), words.QueueNumbers(s))
			}
			if s.MostlyRejected() {
				return words.Join(phrase.Sprintf("%s of them were refused, while there was a listener, which refuses nobody", phrase.Number(s.Refused())), lostWhere(s), words.QueueNumbers(s))
			}
			which := "them"
			if s.LostInFront() {
				which = "the latest"
			}
			return words.Join("their SYNs reached this network namespace, the listener dropped none of "+which+" and had room", lostWhere(s), words.QueueNumbers(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.MostlyUnreached() {
				return "Look at the way back to these clients: the SYN-ACKs are lost " + wayBack + ". None of Tomcat's limits has a part in it."
			}
			return phrase.Sentences("Look at what stands before the listener in its network namespace: "+lostWhere(s)+".", "None of Tomcat's limits has a part in it.")
		},
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			do := beforeSteps(s)
			return do, "Any of Tomcat's limits: these clients have not come that far."
		},
		Book: Runbook{
			Title:     "clients are lost in front of the listener",
			Seen:      "Clients' SYNs reached the network namespace and got no answer (or a refusal), while the listener dropped none and had room; or SYN-ACKs left it for them, and they repeated the SYN all the same. Seen by their handshakes (CAP_NET_RAW); without these, of clients in the same network namespace, as a proxy beside the server, by their sockets.",
			Clients:   "Connect timeouts; refused, where a firewall rejects.",
			Check:     "`nft list ruleset`, `iptables-save`; `conntrack -S`, and `net.netfilter.nf_conntrack_count` against `nf_conntrack_max`; `net.ipv4.conf.*.rp_filter`; TCP MD5 or AO. What is named is where a counter moved that accounts for half of these clients: of a rule that has one (with CAP_NET_ADMIN), of connection tracking, of the filter. A rule without a counter leaves the place unknown. Where the SYN-ACKs do not reach the clients, look behind this network namespace: rules on the host of a pod, `ip route get CLIENT`, a stateful firewall on the way that has not seen the SYN. A few of many are lost by any network, and are not said to be this: fewer than three, or than one in twenty of those that have ended.",
			Change:    "What drops them.",
			Vain:      "Any of Tomcat's limits.",
			Holds:     "a client's SYNs were repeated and never answered, and no counter of the listener moved; or clients repeated SYNs that were answered; or clients were refused while the listener was there",
			Otherwise: "what dropped the packets",
		},
	}
}

// nothingShowsIt: no clients fail in a way that the listener's drops of before do not explain.
func nothingShowsIt(s *symptoms.Symptoms) bool {
	return s.InVain()+s.Unreached() == 0 && !s.MostlyRejected()
}

// wayBack is where SYN-ACKs are lost that were seen to leave.
const wayBack = "behind this network namespace (a firewall on the pod's host or in the network, or another route back)"

// lostWhere is what is known of the place.
func lostWhere(s *symptoms.Symptoms) string {
	var found []string
	for _, p := range dropPoints(s) {
		found = append(found, p.what)
	}
	switch {
	case len(found) > 0:
		return strings.Join(found, ", ")
	case s.Rejected():
		return "a firewall rule rejects them with a reset (which one is not known)"
	}
	_, tracked := s.Delta[ConntrackDrop]
	_, ruled := s.Delta[model.RulesRead]
	switch {
	case tracked && ruled:
		return "the place is unknown (no counter of rp_filter, TCP MD5, connection tracking or of a rule that drops moved; a rule without a counter may do it)"
	case tracked:
		return "the place is unknown (no counter of rp_filter, TCP MD5 or connection tracking moved; a firewall rule may do it: not all of their counters are known)"
	}
	return "the place is unknown (a firewall rule, or connection tracking)"
}

// dropPoint is where clients' packets are lost, by a counter that moved for them.
type dropPoint struct {
	what string
	step model.Step
}

// The counters of connection tracking that a namespace's have.
const (
	ConntrackDrop   = "nf_conntrack_drop"
	ConntrackInsert = "nf_conntrack_insert_failed"
	conntrackChain  = "nf_conntrack_chaintoolong"
)

// dropPoints are all whose counters account for half of the clients at least: a counter that
// moves a little has its own reasons.
func dropPoints(s *symptoms.Symptoms) (out []dropPoint) {
	enough := max(1, (s.InFront()+1)/2)
	moved := func(name string) uint64 {
		if n := s.Delta[name]; n >= enough {
			return n
		}
		return 0
	}
	for _, name := range slices.Sorted(maps.Keys(s.Delta)) {
		if n := moved(name); n > 0 && ruleConcerns(s, name) {
			out = append(out, ruleDropPoint(s, name, n))
		}
	}
	for _, c := range []struct{ name, what, text, command string }{
		{"IPReversePathFilter", "the reverse path filter (rp_filter) of the interface that they come in by", "See by which interface the kernel would answer these clients: a route is missing, or rp_filter is too strict", "ip route get CLIENT; sysctl -a -r 'conf.*rp_filter'"},
		{"TCPMD5NotFound", "TCP MD5: the listener wants signatures and the clients send none", md5Text, ""},
		{"TCPMD5Unexpected", "TCP MD5: the clients sign, and the listener has no key for them", md5Text, ""},
		{"TCPMD5Failure", "TCP MD5: the clients' signatures are wrong", md5Text, ""},
		{"TCPAOBad", "TCP-AO: the clients' signatures are wrong", md5Text, ""},
		{"TCPAOKeyNotFound", "TCP-AO: the clients' key is not known", md5Text, ""},
	} {
		if n := moved(c.name); n > 0 {
			out = append(out, dropPoint{phrase.Sprintf("%s (%s +%d)", c.what, c.name, n), advice.Command(c.text, c.command)})
		}
	}
	return append(out, tracking(s, moved)...)
}

const md5Text = "Give both ends the same keys (TCP_MD5SIG, TCP_AO), or none: who has set them up for this port?"

// tracking are the reasons for which connection tracking drops packets.
func tracking(s *symptoms.Symptoms, moved func(string) uint64) (out []dropPoint) {
	if n := moved(ConntrackInsert); n > 0 {
		out = append(out, dropPoint{
			phrase.Sprintf("connection tracking could not insert their connections (insert_failed +%d), as where an address translation has too few source ports", n),
			advice.Command("See which address translation they go through, and give it more ports or addresses", "nft list ruleset; iptables-save -t nat; conntrack -S"),
		})
	}
	if n := moved(conntrackChain); n > 0 {
		out = append(out, dropPoint{phrase.Sprintf("connection tracking's hash table has too long chains (chaintoolong +%d)", n), conntrackStep("net.netfilter.nf_conntrack_buckets", 0)})
	}
	count, most := s.Sysctl["nf_conntrack_count"], s.Sysctl["nf_conntrack_max"]
	others := s.Delta[ConntrackInsert] + s.Delta[conntrackChain]
	if n := moved(ConntrackDrop); n > others {
		what := phrase.Sprintf("connection tracking is full (drop +%d", n-others)
		if most > 0 && count >= most*9/10 {
			what += phrase.Sprintf(", %d of %d connections", min(count, most), most)
		}
		out = append(out, dropPoint{what + ")", conntrackStep("net.netfilter.nf_conntrack_max", most)})
	} else if _, counted := s.Delta[ConntrackDrop]; !counted && most > 0 && count >= most {
		out = append(out, dropPoint{phrase.Sprintf("connection tracking is full (nf_conntrack_count %d of %d)", min(count, most), most), conntrackStep("net.netfilter.nf_conntrack_max", most)})
	}
	return out
}

// conntrackStep: the limits are those of the machine's first network namespace.
func conntrackStep(name string, now int) model.Step {
	if now == 0 {
		return advice.Command("Give the table more buckets, on the host", "sysctl "+name+" net.netfilter.nf_conntrack_count")
	}
	to := strconv.Itoa(2 * now)
	return model.Step{
		Text: "Make room for more tracked connections, on the host; drop in conntrack -S then stands still", Command: phrase.Sprintf("sysctl -w %s=%s", name, to),
		Setting: name, From: strconv.Itoa(now), To: to,
	}
}

// ruleConcerns: it is a rule's counter, and not one for another port. A rule that rejects
// answers, so that nobody waits for an answer.
func ruleConcerns(s *symptoms.Symptoms, name string) bool {
	rule, ok := strings.CutPrefix(name, model.RulePrefix)
	if !ok {
		return false
	}
	if _, port, one := strings.Cut(rule, " dport "); one && port != strconv.Itoa(int(s.Now.Port)) {
		return false
	}
	return s.InFront() > 0 || strings.Contains(rule, " reject")
}

func ruleDropPoint(s *symptoms.Symptoms, name string, n uint64) dropPoint {
	rule, _, ofPort := strings.Cut(strings.TrimPrefix(name, model.RulePrefix), " dport ")
	at := strings.LastIndexByte(rule, ' ')
	where, verdict := rule[:at], rule[at+1:]
	chain, _, _ := strings.Cut(where, " handle ")
	step := advice.Command("Look at this rule, and change it", "nft -a list chain "+chain)
	if ofPort && 5*n >= 4*max(s.GaveUp(), s.StillTry(), s.Refused()) { // it accounts for nearly all, who are counted later
		step.Limit = reading.LimitRule
	}
	return dropPoint{phrase.Sprintf("the netfilter rule %s, which %ss them (+%s)", where, verdict, phrase.Count(n, "packet")), step}
}

func beforeSteps(s *symptoms.Symptoms) (out []model.Step) {
	if s.MostlyUnreached() {
		// tcp[] is for IPv4 alone (pcap-filter(7)): of IPv6 it is the byte of the flags, 13, behind a header of 40.
		return []model.Step{
			advice.Command("See how far the SYN-ACKs come: on the machine that this runs on, then towards the clients", phrase.Sprintf("tcpdump -nni any 'src port %v and (tcp[tcpflags] & tcp-syn != 0 or ip6[53] & 2 != 0)'", s.Now.Port)),
			advice.Command("See the firewall rules there (of a pod: its host's), by their counters", "nft list ruleset; iptables-save -c"),
			advice.Command("See which way the answers take: a stateful firewall that has not seen the SYN drops them", "ip route get CLIENT"),
		}
	}
	for _, p := range dropPoints(s) {
		out = append(out, p.step)
	}
	if len(out) > 0 {
		return out
	}
	return []model.Step{
		advice.Command("See which rules drop or reject packets to this port, by their counters", "nft list ruleset; iptables-save -c"),
		advice.Command("See whether connection tracking drops any (insert_failed, drop)", "conntrack -S"),
	}
}
