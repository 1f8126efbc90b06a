package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// synBacklog: SYNs are dropped before the accept queue. The kernel's counters name it.
func synBacklog() Cause {
	return Cause{
		Name:     model.CauseSynBacklog,
		OnlyFull: true,
		Full:     func(s *symptoms.Symptoms, _ model.Cause) bool { return s.SynQueueFull() },
		Depth:    10,
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if !s.SynQueueMayBe() {
				return " before the accept queue; why is unknown: the SYN queue answers with cookies when it is full"
			}
			return " at the SYN queue, before their handshake was complete"
		},
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string { return words.Join(words.SynNumbers(s)) },
		Advice:   func(s *symptoms.Symptoms, _ model.Verdict) string { return advice.SynQueue(s) },
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			if !s.SynQueueMayBe() {
				return advice.OtherSynSteps(), "A longer accept queue or SYN queue: neither was full."
			}
			return advice.SynQueueSteps(s), "More threads or connections: these clients have not come that far."
		},
		Book: Runbook{
			Title:     "SYNs are dropped before the accept queue",
			Seen:      "SYNs were dropped before the accept queue.",
			Check:     "A flood looks like many sources that never finish the handshake: `ss -tan state syn-recv`.",
			Change:    "`sysctl -w net.ipv4.tcp_syncookies=1`; a longer acceptCount also lengthens the SYN queue.",
			Vain:      "Threads and maxConnections.",
			Holds:     "the namespace counted ListenDrops that are no ListenOverflows",
			Otherwise: "what is behind the accept queue; where SYN cookies are on, that it is not the SYN queue",
		},
	}
}
