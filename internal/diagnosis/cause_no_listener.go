package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// noListener: nothing listens on a port on which something should.
func noListener() cause {
	return cause{
		name:    model.CauseNoListener,
		now:     rule[*judge]{holds: func(j *judge) certainty { return when(!j.Now.Listening() && j.Now.Expected, surely) }},
		because: (*judge).becauseNothing,
		evidence: func(j *judge, _ model.Verdict) string {
			return j.join(phrase.Sprintf("no LISTEN socket on port %v", j.Now.Port), j.elsewhereFact(), j.resetNumbers())
		},
		advice: func(j *judge, _ model.Verdict) string {
			if j.onlyElsewhere() {
				return "Ask that network namespace: " + j.elsewhereCommand() + ". Or, if this one was meant: the application is down here, still starting, or bound to another address or port."
			}
			return "Look at the application's log and at \"ss -ltn\": it is down, still starting, or bound to another address or port. No Tomcat limit refuses a connection on Linux."
		},
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			return j.noListenerSteps(), "Any of Tomcat's limits: none refuses a connection on Linux."
		},
		book: Runbook{
			Title:     "nothing listens on an expected port",
			Seen:      "Nothing listens on a port that was asked for (`--port`, or the configuration file).",
			Clients:   "Connection refused.",
			Check:     "The application's log; `ss -ltn` for the address it is bound to. A process that listens on the port in another network namespace (a container's) is named: `tcpdiag snapshot --pid PID` asks that one, and the status is warning.",
			Vain:      "Any of Tomcat's limits: none of them refuses a connection on Linux.",
			Holds:     "no LISTEN socket on an expected port",
			Otherwise: "nothing: a port that nobody asked for may be closed",
		},
	}
}

// elsewhereFact says who listens on the port in another network namespace.
func (j *judge) elsewhereFact() string {
	if j.Now.Elsewhere == nil {
		return ""
	}
	return phrase.Sprintf("%s listens on %v in another network namespace", j.Now.Elsewhere.Who(), j.Now.Port)
}

func (j *judge) elsewhereCommand() string {
	return phrase.Sprintf("sudo tcpdiag snapshot --pid %v", j.Now.Elsewhere.PID)
}

func (j *judge) noListenerSteps() []model.Step {
	if j.onlyElsewhere() {
		return []model.Step{command("Look into the network namespace in which it listens", j.elsewhereCommand())}
	}
	return []model.Step{
		command("See which addresses and ports are listened on: it may be bound to another", phrase.Sprintf("ss -Hltnp sport = :%v; ss -ltnp", j.Now.Port)),
		action("Read the application's log: it is down, or still starting"),
	}
}
