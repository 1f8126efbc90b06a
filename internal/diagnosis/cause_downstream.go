package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func (j *judge) downstreamSteps() []model.Step {
	peer := peerName(j.waits.peer)
	if j.waits.peer.Connecting > j.waits.peer.InFlight {
		return []model.Step{
			action(phrase.Sprintf("Find out why %s does not answer a connection: down, its own accept queue full, or a firewall", peer)),
			action("Set a connect timeout on the client, below that of the callers here"),
		}
	}
	return []model.Step{
		action(phrase.Sprintf("Look at %s: what it is asked, and what it waits for", peer)),
		action("Set a timeout on the client, below that of the callers here: it frees the threads of those that have given up"),
	}
}
