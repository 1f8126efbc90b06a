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
			return j.join(phrase.Sprintf("no LISTEN socket on port %v", j.Now.Port), j.resetNumbers())
		},
		advice: func(*judge, model.Verdict) string {
			return "Look at the application's log and at \"ss -ltn\": it is down, still starting, or bound to another address or port. No Tomcat limit refuses a connection on Linux."
		},
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			return j.noListenerSteps(), "Any of Tomcat's limits: none refuses a connection on Linux."
		},
		book: Runbook{
			Title:     "nothing listens on an expected port",
			Seen:      "Nothing listens on a port that was asked for (`--port`, or the configuration file).",
			Clients:   "Connection refused.",
			Check:     "The application's log; `ss -ltn` for the address it is bound to.",
			Vain:      "Any of Tomcat's limits: none of them refuses a connection on Linux.",
			Holds:     "no LISTEN socket on an expected port",
			Otherwise: "nothing: a port that nobody asked for may be closed",
		},
	}
}

func (j *judge) noListenerSteps() []model.Step {
	return []model.Step{
		command("See which addresses and ports are listened on: it may be bound to another", phrase.Sprintf("ss -Hltnp sport = :%v; ss -ltnp", j.Now.Port)),
		action("Read the application's log: it is down, or still starting"),
	}
}
