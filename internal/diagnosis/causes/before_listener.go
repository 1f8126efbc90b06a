package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/droppoints"
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
			holds: func(s *symptoms.Symptoms) Certainty {
				return When(s.LostMany() || s.RefusedMany() && s.Rejected(), Surely)
			},
			refuted: []refutation[*symptoms.Symptoms]{
				{"the listener dropped packets lately, and no clients began after that whom nothing answers, no answer reaches, and most that fail are not refused", func(s *symptoms.Symptoms) bool { return s.DroppedLately() && nothingShowsIt(s) }},
				{"packets of open connections are lost as well, and other clients get in: lossy_network", func(s *symptoms.Symptoms) bool {
					return s.Lossy() && s.MostlyUnreached()
				}},
				{"its accept queue was full", func(s *symptoms.Symptoms) bool { return s.WasFull() && nothingShowsIt(s) }},
			},
		},
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.MostlyUnreached() {
				return " because the server's SYN-ACKs do not reach them: they are lost " + wayBack
			}
			return " because they are lost in front of the listener: " + droppoints.Where(s)
		},
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.MostlyUnreached() {
				return words.Join(phrase.Sprintf("SYN-ACKs left this network namespace for %s, which repeated the SYN all the same", phrase.Count(s.Unreached(), "client")), words.QueueNumbers(s))
			}
			if n, _ := s.NoWayBack(); n > 0 {
				return words.Join(phrase.Sprintf("their SYNs reached the listener, which has dropped %s before its queues", phrase.Count(s.DroppedFor(model.CauseSynBacklog), "packet")), droppoints.Where(s), words.QueueNumbers(s))
			}
			if s.MostlyRejected() {
				sent := ""
				if s.LocalRefused() > 0 {
					sent = phrase.Sprintf("TCP itself has sent %s there meanwhile (OutRsts)", phrase.Count(s.Delta["OutRsts"], "reset"))
				}
				return words.Join(words.RefusedAtLeast(s)+phrase.Number(s.Refused())+" of them were refused, while there was a listener, which refuses nobody", sent, droppoints.Where(s), words.QueueNumbers(s))
			}
			which := "them"
			if s.LostInFront() {
				which = "the latest"
			}
			return words.Join("their SYNs reached this network namespace, the listener dropped none of "+which+" and had room", droppoints.Where(s), words.QueueNumbers(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.MostlyUnreached() {
				return "Look at the way back to these clients: the SYN-ACKs are lost " + wayBack + ". None of Tomcat's limits has a part in it."
			}
			return phrase.Sentences("Look at what stands before the listener in its network namespace: "+droppoints.Where(s)+".", "None of Tomcat's limits has a part in it.")
		},
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			return droppoints.Steps(s), "Any of Tomcat's limits: these clients have not come that far."
		},
		Book: Runbook{
			Title:     "clients are lost in front of the listener",
			Seen:      "Clients' SYNs reached the network namespace and got no answer (or a refusal), while the listener dropped none and had room; or they repeated the SYN although SYN-ACKs left for them; or SYN-ACKs have no route (`OutNoRoutes`) or come back as unreachable (`InDestUnreachs`: no answer to ARP, or a router rejects them). Seen by handshakes (CAP_NET_RAW); else by local clients' sockets.",
			Clients:   "Connect timeouts; refused, where a firewall rejects.",
			Check:     "`nft list ruleset`, `iptables-save` (redirections to nobody, too); `conntrack -S`, and `net.netfilter.nf_conntrack_count` against `nf_conntrack_max`; `net.ipv4.conf.*.rp_filter`; TCP MD5 or AO; `PAWSTimewait`; a filter of the service or container (`IPAddressDeny=`, `bpftool cgroup tree`): the socket's own drops rise then, and ListenDrops do not. A counter that explains half of these clients names it: a rule's (CAP_NET_ADMIN), connection tracking's, the filter's. Where SYN-ACKs do not reach the clients, look behind this network namespace: a pod's host, `ip route get CLIENT`, a stateful firewall. A few beside others, as of a scanner of ports, are `clients_kept_out`.",
			Change:    "What drops them.",
			Vain:      "Any of Tomcat's limits.",
			Holds:     "a client's SYNs were repeated and never answered, and no counter of the listener moved; or clients repeated SYNs that were answered; or SYNs were dropped before the accept queue, and as many packets had no route, or ICMP said that they cannot be delivered; or clients were refused while the listener was there; three or more and one of twenty that came, and, where others are connected and nobody new is let in, of several addresses, or ten of one",
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
