package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// listenerClosed: a listener went away with clients in its queue.
func listenerClosed() Cause {
	return Cause{
		Name: model.CauseListenerClosed,
		Now: rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty {
			return When(s.ResetInQueue() > 0 && (!s.Now.Listening() || s.Losses().DroppedPackets == 0), Surely)
		}},
		Because: becauseNothing,
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return words.Join(phrase.Sprintf("a listener on port %v went away with %s in its accept queue: their clients were reset, although all they did was wait", s.Now.Port, phrase.Count(s.ResetInQueue(), "connection")), words.DrainingFact(s), words.ResetNumbers(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return adviseClosed(s) },
		Steps:  func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) { return closedSteps(s) },
		Book: Runbook{
			Title:     "a listener closed with clients in its queue",
			Seen:      "A listener closed with clients in its queue; they were reset.",
			Clients:   "A reset, although all they did was wait.",
			Change:    "Take the instance out of the load balancer first, wait until no new connections come, then stop it (Kubernetes: a `preStop` hook that sleeps 10 s).",
			Vain:      "A graceful shutdown alone: it closes the listener at once.",
			Holds:     "a watched listener went away while connections were in its accept queue",
			Otherwise: "no_listener, where the port is expected",
		},
	}
}

func adviseClosed(s *symptoms.Symptoms) string {
	if s.Closed != nil && s.Closed.Part {
		return "Set net.ipv4.tcp_migrate_req=1 (Linux 5.14): the kernel then moves whoever waits in the queue of a socket that closes to the others, if they have room."
	}
	return "Take the instance out of the load balancer first, wait until no new connections come, and only then stop it (in Kubernetes a preStop hook that sleeps 10 s). A graceful shutdown alone does not do this: it closes the listener at once and with it whatever waits in its queue."
}

func closedSteps(s *symptoms.Symptoms) (do []model.Step, not string) {
	if s.Closed != nil && s.Closed.Part {
		return []model.Step{{
			Text: "Have the kernel move whoever waits to the other sockets (Linux 5.14)", Command: "sysctl -w net.ipv4.tcp_migrate_req=1",
			Setting: "net.ipv4.tcp_migrate_req", From: "0", To: "1",
		}}, ""
	}
	return []model.Step{
		advice.Action("Before a stop, take the instance out of the load balancer"),
		advice.Action("Wait until no new connections come (in Kubernetes a preStop hook that sleeps 10 s), and only then stop it"),
	}, "A graceful shutdown alone: it closes the listener at once, and with it whatever waits in its queue."
}
