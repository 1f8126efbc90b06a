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
	}
}

func (j *judge) noListenerSteps() []model.Step {
	return []model.Step{
		command("See which addresses and ports are listened on: it may be bound to another", phrase.Sprintf("ss -Hltnp sport = :%v; ss -ltnp", j.Now.Port)),
		action("Read the application's log: it is down, or still starting"),
	}
}
