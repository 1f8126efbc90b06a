package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// noListener: nothing listens on a port on which something should.
func noListener() Cause {
	return Cause{
		Name:    model.CauseNoListener,
		Now:     rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty { return When(!s.Now.Listening(), Surely) }},
		Because: becauseNothing,
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return words.Join(phrase.Sprintf("no LISTEN socket on port %v", s.Now.Port), words.DrainingFact(s), words.ElsewhereFact(s), words.ResetNumbers(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.Now.Draining != nil {
				return "Wait for it, or start another instance: it ends when its requests have been answered, or at its timeout. Before the next stop, take the instance out of the load balancer first, and wait until no new connections come (in Kubernetes a preStop hook that sleeps 10 s). If nobody stops it, its log says why it has closed its listener. No Tomcat limit refuses a connection on Linux."
			}
			if s.OnlyElsewhere() && !s.RefusedHere() {
				return "Ask that network namespace: " + elsewhereCommand(s) + ". Or, if this one was meant: the application is down here, still starting, or bound to another address or port."
			}
			return "Look at the application's log and at \"ss -ltn\": it is down, still starting, or bound to another address or port. No Tomcat limit refuses a connection on Linux." + orElsewhere(s)
		},
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			if s.Now.Draining != nil {
				return drainingSteps(s), "Any of Tomcat's limits, or a firewall's rules: there is no listener, and the kernel refuses whoever comes."
			}
			return noListenerSteps(s), "Any of Tomcat's limits: none refuses a connection on Linux."
		},
		Book: Runbook{
			Title:     "nothing listens on an expected port",
			Seen:      "Nothing listens on a port that was asked for (`--port`, or the configuration file); or on one where a server listened within the last hour, and three clients or more are refused there, with less than a minute between them: one may be a stranger.",
			Clients:   "Connection refused.",
			Check:     "The application's log; `ss -ltn` for the address it is bound to. A process that listens on the port in another network namespace (a container's) is named: `tcpdiag snapshot --pid PID` asks that one, and the status is warning while no client is refused here. A process that still has established connections of the port is named, too (`draining` in the JSON): it has closed its listener, as in a graceful shutdown, and serves those whom it has.",
			Change:    "Where it shuts down: take the instance out of the load balancer first, wait until no new connections come, then stop it (Kubernetes: a `preStop` hook that sleeps 10 s).",
			Vain:      "Any of Tomcat's limits: none of them refuses a connection on Linux.",
			Holds:     "no LISTEN socket on an expected port; or on one that an agent saw a server listen on within the last hour, and three clients or more were refused there, with less than a minute between them",
			Otherwise: "nothing: a port that nobody asks for may be closed",
		},
	}
}

func drainingSteps(s *symptoms.Symptoms) []model.Step {
	o := s.Now.Draining
	return []model.Step{
		advice.Action(phrase.Sprintf("Wait for it: %s %v ends when its requests have been answered, or at its timeout", o.Comm, o.PID)),
		advice.Action("Before the next stop, take the instance out of the load balancer (readiness), and wait until no new connections come (in Kubernetes a preStop hook that sleeps 10 s)"),
		advice.Action("If nobody stops it, read its log: it says why the listener was closed"),
	}
}

func elsewhereCommand(s *symptoms.Symptoms) string {
	if s.Now.Elsewhere.Others > 0 { // which is meant is not known
		return phrase.Sprintf("sudo tcpdiag snapshot --all-namespaces --port %v", s.Now.Port)
	}
	return phrase.Sprintf("sudo tcpdiag snapshot --pid %v", s.Now.Elsewhere.PID)
}

// orElsewhere is what else may be meant: clients came here, perhaps since nothing leads them there.
func orElsewhere(s *symptoms.Symptoms) string {
	if !s.OnlyElsewhere() {
		return ""
	}
	return " If the other namespace is meant, ask that one: " + elsewhereCommand(s) + "; what leads its clients there (a published port, a Service) does not."
}

func noListenerSteps(s *symptoms.Symptoms) (do []model.Step) {
	if !s.OnlyElsewhere() || s.RefusedHere() {
		do = append(do,
			advice.Command("See which addresses and ports are listened on: it may be bound to another", phrase.Sprintf("ss -Hltnp sport = :%v; ss -ltnp", s.Now.Port)),
			advice.Action("Read the application's log: it is down, or still starting"))
	}
	if s.OnlyElsewhere() {
		do = append(do, advice.Command("Look into the network namespace in which it listens", elsewhereCommand(s)))
	}
	return do
}
