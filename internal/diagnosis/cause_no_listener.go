package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func (j *judge) noListenerSteps() []model.Step {
	return []model.Step{
		command("See which addresses and ports are listened on: it may be bound to another", phrase.Sprintf("ss -Hltnp sport = :%v; ss -ltnp", j.Now.Port)),
		action("Read the application's log: it is down, or still starting"),
	}
}
