package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/droppoints"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// lossyNetwork: packets of all kinds are lost between clients and the server, some of many.
func lossyNetwork() Cause {
	return Cause{
		Name: model.CauseLossyNetwork,
		Now: rule[*symptoms.Symptoms]{
			holds: func(s *symptoms.Symptoms) Certainty { return When(s.FailByLoss(), Surely) },
			refuted: []refutation[*symptoms.Symptoms]{
				{"the connections or threads are used up", (*symptoms.Symptoms).TakenUp},
			},
		},
		Near:    (*symptoms.Symptoms).Lossy,
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string { return " because " + words.Lossy(s) },
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			facts := []string{words.Struggled(s), words.Repeated(s)}
			for _, p := range droppoints.OfRepeated(s) {
				facts = append(facts, "here, "+p.What)
			}
			return words.Join(append(facts, words.QueueNumbers(s))...)
		},
		Advice: func(*symptoms.Symptoms, model.Verdict) string {
			return "Look at the way between: interfaces of this machine (errors, drops), its rules and traffic control, then the network to the clients that are concerned. None of Tomcat's limits has a part in it."
		},
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			var do []model.Step
			for _, p := range droppoints.OfRepeated(s) {
				do = append(do, p.Step)
			}
			return append(do,
				advice.Command("See whose segments are sent again (retrans): all clients', or those of one network", phrase.Sprintf("ss -tino sport = :%v", s.Now.Port)),
				advice.Command("See whether this machine drops them: its interfaces, traffic control and rules (of a pod: its host's, too)", "ip -s -s link; tc -s qdisc; nft list ruleset"),
				advice.Command("Then measure the way to one of these clients", "mtr -nzbwc 100 CLIENT"),
			), "Any of Tomcat's limits, or longer timeouts: the packets are lost on their way."
		},
		Book: Runbook{
			Title:     "packets are lost between clients and the server",
			Seen:      "Clients needed their packets again to connect, though the server answered them and its listener dropped none (seen by their handshakes, CAP_NET_RAW), and of what the network namespace sends on open connections many segments are sent again (`RetransSegs` less `TCPSynRetrans`, beside `OutSegs`).",
			Clients:   "Connecting takes one second, or three; some time out, before or after. Answers come late.",
			Check:     "`nstat -az TcpRetransSegs TcpOutSegs TcpExtTCPTimeouts` twice; `ss -tino 'sport = :PORT'` for whose connections repeat; `ip -s -s link`, `tc -s qdisc`, `nft list ruleset` here, and on the host of a pod; `mtr` to a client, and from there. Below 1 % is usual in a data centre, 2 to 3 % of clients all over the Internet.",
			Change:    "What loses them: a full link or queue (a policer, traffic control), a rule, a duplex or cable fault, a tunnel.",
			Vain:      "Any of Tomcat's limits.",
			Holds:     "the listener dropped no packet and had room, 3 % of the segments that were sent on open connections were sent again, while clients that had been sent a SYN-ACK left without having been let in; or clients fail, and three and a twentieth of those whom the server answered needed packets again to connect, or on a quarter of the connections 3 % of the bytes were sent again (6 % of all segments); as a warning, the latter while none is known to fail",
			Otherwise: "before_listener, where nothing but the SYN-ACKs is lost",
		},
	}
}
