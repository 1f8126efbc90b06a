// Package droppoints names where clients' packets are lost in front of a listener, by the counters that moved
// for them.
package droppoints

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

// Where is what is known of the place.
func Where(s *symptoms.Symptoms) string {
	var found []string
	for _, p := range Of(s) {
		found = append(found, p.What)
	}
	switch {
	case len(found) > 0:
		return strings.Join(found, ", ")
	case s.Rejected():
		if _, rule := s.RefusedBy(); !rule {
			return "a firewall rule rejects them with a reset, or an address translation sends them on to a port where nobody listens (which is not known)"
		}
		return "a firewall rule rejects them with a reset (which one is not known)"
	}
	_, tracked := s.Delta[ConntrackDrop]
	ruled := s.Delta[model.RulesRead] > 0 // else their counters are those of before
	switch {
	case tracked && ruled:
		return "the place is unknown (no counter of rp_filter, TCP MD5, connection tracking or of a rule that drops moved; a rule without a counter may do it)"
	case tracked:
		return "the place is unknown (no counter of rp_filter, TCP MD5 or connection tracking moved; a firewall rule may do it: not all of their counters are known)"
	}
	return "the place is unknown (a firewall rule, or connection tracking)"
}

// Point is where clients' packets are lost, by a counter that moved for them.
type Point struct {
	What string
	Step model.Step
}

// The counters of connection tracking that a namespace's have.
const (
	ConntrackDrop   = "nf_conntrack_drop"
	ConntrackInsert = "nf_conntrack_insert_failed"
	conntrackChain  = "nf_conntrack_chaintoolong"
)

// Of are all whose counters account for half of the clients at least: a counter that
// moves a little has its own reasons.
func Of(s *symptoms.Symptoms) (out []Point) {
	if s.AddressMissing() { // the kernel delivers nothing to it, whatever else it counts
		return []Point{{words.AddressMissing(s), advice.MissingAddressSteps(s)[1]}}
	}
	switch n, counter := s.NoWayBack(); counter {
	case symptoms.InDestUnreachs:
		return []Point{{
			phrase.Sprintf("their SYN-ACKs cannot be delivered (InDestUnreachs +%d): nobody answers ARP for them or the next hop, or a router rejects them", n),
			advice.Command("See whether the next hop towards these clients is known (FAILED and INCOMPLETE are not): an interface, VLAN or address there is wrong; else which router says so", "ip route get CLIENT; ip neigh; tcpdump -nni any 'icmp[icmptype] == icmp-unreach'"),
		}}
	case symptoms.OutNoRoutes:
		return []Point{{
			phrase.Sprintf("the kernel has no route back to them, so that no SYN-ACK leaves (OutNoRoutes +%d)", n),
			advice.Command("See which route the kernel has to these clients, and give it one (of a pod or container: in its network namespace)", "ip route get CLIENT; ip rule; ip route show table all"),
		}}
	}
	enough := max(1, (s.InFront()+1)/2)
	moved := func(name string) uint64 {
		if n := s.Delta[name]; n >= enough {
			return n
		}
		return 0
	}
	for _, name := range slices.Sorted(maps.Keys(s.Delta)) {
		if n := moved(name); n > 0 && ruleConcerns(s, name) {
			out = append(out, rulePoint(s, name, n))
		}
	}
	for _, c := range []struct{ name, what, text, command string }{
		{"IPReversePathFilter", "the reverse path filter (rp_filter) of the interface that they come in by", "See by which interface the kernel would answer these clients: a route is missing, or rp_filter is too strict", "ip route get CLIENT; sysctl -a -r 'conf.*rp_filter'"},
		{"TCPMD5NotFound", "TCP MD5: the listener wants signatures and the clients send none", md5Text, ""},
		{"TCPMD5Unexpected", "TCP MD5: the clients sign, and the listener has no key for them", md5Text, ""},
		{"TCPMD5Failure", "TCP MD5: the clients' signatures are wrong", md5Text, ""},
		{"TCPAOBad", "TCP-AO: the clients' signatures are wrong", md5Text, ""},
		{"TCPAOKeyNotFound", "TCP-AO: the clients' key is not known", md5Text, ""},
		{"PAWSTimewait", "a connection of their address and port is in TIME_WAIT, and has later timestamps, as where hosts share an address", "See which address translation they come through. Give it more ports or addresses; have it let a client's reset through (no drop of ct state invalid), which ends TIME_WAIT unless tcp_rfc1337 is 1 here. Who then comes from another port is counted as having given up", "nstat -az TcpExtPAWSTimewait; sysctl net.ipv4.tcp_rfc1337"},
	} {
		if n := moved(c.name); n > 0 {
			out = append(out, Point{phrase.Sprintf("%s (%s +%d)", c.what, c.name, n), advice.Command(c.text, c.command)})
		}
	}
	out = append(out, tracking(s, moved)...)
	if n := s.DroppedBySocket(); n > 0 && len(out) == 0 && s.InFront() > 0 {
		return []Point{filtered(s, n)}
	}
	if tcp, _ := s.RefusedBy(); tcp && len(out) == 0 && s.Rejected() {
		return []Point{translated(s)}
	}
	return out
}

// Steps are what to do about clients that are lost in front of the listener.
func Steps(s *symptoms.Symptoms) (out []model.Step) {
	if s.MostlyUnreached() {
		// tcp[] is for IPv4 alone (pcap-filter(7)): of IPv6 it is the byte of the flags, 13, behind a header of 40.
		return []model.Step{
			advice.Command("See how far the SYN-ACKs come: on the machine that this runs on, then towards the clients", phrase.Sprintf("tcpdump -nni any 'src port %v and (tcp[tcpflags] & tcp-syn != 0 or ip6[53] & 2 != 0)'", s.Now.Port)),
			advice.Command("See the firewall rules there (of a pod: its host's), by their counters", "nft list ruleset; iptables-save -c"),
			advice.Command("See which way the answers take: a stateful firewall that has not seen the SYN drops them", "ip route get CLIENT"),
		}
	}
	for _, p := range Of(s) {
		out = append(out, p.Step)
	}
	if len(out) > 0 {
		return out
	}
	out = []model.Step{
		advice.Command("See which rules drop or reject packets to this port, by their counters", "nft list ruleset; iptables-save -c"),
		advice.Command("See whether connection tracking drops any (insert_failed, drop)", "conntrack -S"),
	}
	if s.Rejected() {
		return out
	}
	return append(out, advice.Command("See whether a filter of an interface does (traffic control, eBPF), or one of the service or container (systemd's IPAddressDeny)", "for d in $(ls /sys/class/net); do tc -s filter show dev $d ingress; done; bpftool cgroup tree"))
}

// Rules are those whose counters moved by half of that number of clients at least.
func Rules(s *symptoms.Symptoms, clients uint64) (out []Point) {
	for _, name := range slices.Sorted(maps.Keys(s.Delta)) {
		if n := s.Delta[name]; n >= max(1, (clients+1)/2) && ruleOfPort(s, name) {
			p := rulePoint(s, name, n)
			p.What = strings.Replace(p.What, " them ", " packets ", 1)
			out = append(out, p)
		}
	}
	return out
}

// Strangers says what keeps out those few that do not get in, where it shows.
func Strangers(s *symptoms.Symptoms) string {
	refused, lost, reset := s.Strangers()
	var found []string
	if refused > 0 && !symptoms.Covers(s.Now, s.Clients()) {
		found = append(found, "it listens on "+s.Now.ID.Address.String()+" alone")
	}
	if refused+lost > 0 {
		for _, p := range Rules(s, refused+lost) {
			found = append(found, p.What)
		}
	}
	if reset > 0 {
		found = append(found, reading.ServerName(s.Now)+" itself has reset them, as those that speak another protocol, or that its own rules reject")
	}
	if len(found) == 0 {
		return "what keeps them out is not known"
	}
	return strings.Join(found, ", ")
}

// StrangersSteps ask who they are.
func StrangersSteps(s *symptoms.Symptoms) []model.Step {
	refused, lost, reset := s.Strangers()
	out := []model.Step{advice.Command("See who they are, and whether they are meant to get in: a scanner of ports is not, and then nothing is to be changed",
		phrase.Sprintf("tcpdump -nni any 'dst port %v and (tcp[tcpflags] & tcp-syn != 0 or ip6[53] & 2 != 0)'", s.Now.Port))}
	if refused+lost > 0 {
		out = append(out, outsideSteps(s, refused, lost)...)
	}
	if reset > 0 {
		out = append(out, advice.Action("If they are, see in the log of "+reading.ServerName(s.Now)+" why it resets them"))
	}
	return out
}

// outsideSteps are what to do about those that are not let in, where they are to be.
func outsideSteps(s *symptoms.Symptoms, refused, lost uint64) (out []model.Step) {
	for _, p := range Rules(s, refused+lost) {
		out = append(out, model.Step{Text: p.Step.Text, Command: p.Step.Command})
	}
	if len(out) > 0 {
		return out
	}
	if refused > 0 && !symptoms.Covers(s.Now, s.Clients()) {
		text := "If they are, have them ask where it listens"
		if s.OthersGetIn() {
			text += ", or come by the proxy that does"
		}
		return []model.Step{advice.Action(text)}
	}
	return []model.Step{advice.Command("If they are, see which rules drop or reject packets to this port, by their counters", "nft list ruleset; iptables-save -c")}
}

// OfRepeated are those whose counters moved by half of the segments that were sent again.
func OfRepeated(s *symptoms.Symptoms) []Point {
	again, _ := s.Repeated()
	return Rules(s, again)
}

// filtered: packets come to the socket, which drops them.
func filtered(s *symptoms.Symptoms, n uint64) Point {
	return Point{
		phrase.Sprintf("the listener's socket drops them (its drops +%d, ListenDrops +0), as a filter of its service or container does (eBPF: systemd's IPAddressDeny, a security agent)", n),
		advice.Command("See which filter that is, and have it let these clients through", phrase.Sprintf("systemctl show -p IPAddressAllow,IPAddressDeny UNIT; bpftool cgroup tree; ss -lntb sport = :%v", s.Now.Port)),
	}
}

// translated: the listener refuses nobody, and the kernel's TCP does.
func translated(s *symptoms.Symptoms) Point {
	return Point{
		phrase.Sprintf("TCP itself refuses them (OutRsts +%d), as where an address translation sends them on to a port where nobody listens, or the listener takes IPv6 alone", s.Delta["OutRsts"]),
		advice.Command("See whether a rule sends them on to another port, and start what is to listen there (a sidecar, a proxy), or take the rule away", "nft list ruleset; iptables-save -t nat"),
	}
}

const md5Text = "Give both ends the same keys (TCP_MD5SIG, TCP_AO), or none: who has set them up for this port?"

// tracking are the reasons for which connection tracking drops packets.
func tracking(s *symptoms.Symptoms, moved func(string) uint64) (out []Point) {
	if n := moved(ConntrackInsert); n > 0 {
		out = append(out, Point{
			phrase.Sprintf("connection tracking could not insert their connections (insert_failed +%d), as where an address translation has too few source ports", n),
			advice.Command("See which address translation they go through, and give it more ports or addresses", "nft list ruleset; iptables-save -t nat; conntrack -S"),
		})
	}
	if n := moved(conntrackChain); n > 0 {
		out = append(out, Point{phrase.Sprintf("connection tracking's hash table has too long chains (chaintoolong +%d)", n), conntrackStep("net.netfilter.nf_conntrack_buckets", 0)})
	}
	count, most := s.Sysctl["nf_conntrack_count"], s.Sysctl["nf_conntrack_max"]
	others := s.Delta[ConntrackInsert] + s.Delta[conntrackChain]
	if n := moved(ConntrackDrop); n > others {
		what := phrase.Sprintf("connection tracking is full (drop +%d", n-others)
		if most > 0 && count >= most*9/10 {
			what += phrase.Sprintf(", %d of %d connections", min(count, most), most)
		}
		out = append(out, Point{what + ")", conntrackStep("net.netfilter.nf_conntrack_max", most)})
	} else if _, counted := s.Delta[ConntrackDrop]; !counted && most > 0 && count >= most {
		out = append(out, Point{phrase.Sprintf("connection tracking is full (nf_conntrack_count %d of %d)", min(count, most), most), conntrackStep("net.netfilter.nf_conntrack_max", most)})
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
	return ruleOfPort(s, name) && (s.InFront() > 0 || strings.Contains(name, " reject"))
}

// ruleOfPort: it is a rule's counter, of this port or of any.
func ruleOfPort(s *symptoms.Symptoms, name string) bool {
	rule, ok := strings.CutPrefix(name, model.RulePrefix)
	_, port, one := strings.Cut(rule, " dport ")
	return ok && (!one || port == strconv.Itoa(int(s.Now.Port)))
}

func rulePoint(s *symptoms.Symptoms, name string, n uint64) Point {
	rule, _, ofPort := strings.Cut(strings.TrimPrefix(name, model.RulePrefix), " dport ")
	at := strings.LastIndexByte(rule, ' ')
	where, verdict := rule[:at], rule[at+1:]
	chain, _, _ := strings.Cut(where, " handle ")
	step := advice.Command("See whether this rule is meant to do that, as to keep strangers out; if it is not, change it", "nft -a list chain "+chain)
	if ofPort && 5*n >= 4*max(s.GaveUp(), s.StillTry(), s.Refused()) { // it accounts for nearly all, who are counted later
		step.Limit = reading.LimitRule
	}
	return Point{phrase.Sprintf("the netfilter rule %s, which %ss them (+%s)", where, verdict, phrase.Count(n, "packet")), step}
}
