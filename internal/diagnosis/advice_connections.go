package diagnosis

import (
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// shortTimeout is what a server that runs out of connections may grant a client
// that sends nothing.
const shortTimeout = 5 * time.Second

// connectionsWanted is a maxConnections above the one in force, and what it is
// enough for: the clients for which there was no room, where they were counted.
func (j *judge) connectionsWanted() (to int, covers string) {
	to, covers = j.connectionsNow()
	if steady := j.steady(reading.StageMaxConnections, j.Now.Connector.MaxConnections.Value, to); steady > to {
		return steady, "room for the most that have come since the trouble began"
	}
	return to, covers
}

// connectionsNow is the same for those that come now.
func (j *judge) connectionsNow() (to int, covers string) {
	clients, known := j.withoutRoom()
	if !known {
		return j.connectionsForPackets()
	}
	most := j.Now.Connector.MaxConnections.Value
	to = max(spare(j.here()+int(clients)), most+1)
	who := j.orMore(clients)
	if step := atMost(most); to > step {
		return step, "a first step towards room for the " + who + " for which there was none"
	}
	return to, "room for those inside, those in the accept queue, and the " + who + " for which there was none"
}

// here are the clients inside and those in the accept queue.
func (j *judge) here() int {
	n, _ := reading.Held(j.Now)
	return max(n, j.Now.Connector.MaxConnections.Value) + reading.Queued(j.Now)
}

// connectionsForPackets: a dropped packet stands for one client at most, and many
// of them are retransmissions: so the packets of the worst second, in which no
// client repeats one, where they were counted. A step is bounded in any case.
func (j *judge) connectionsForPackets() (to int, covers string) {
	most := j.Now.Connector.MaxConnections.Value
	here := j.here()
	dropped, whose := j.overflowed(), "for one client per dropped packet, the most there can have been"
	if b := j.losses().Burst; b > 0 && b < dropped {
		dropped, whose = b, fmt.Sprintf("for the clients of the worst second, which dropped %s", phrase.Count(b, "packet"))
	}
	to, covers = max(spare(here+int(dropped)), most+1), "room for those inside and those in the accept queue"
	switch bound := min(max(j.T.ConnectionsMost, roundUp(2*here)), atMost(most)); {
	case dropped == 0 && to > atMost(most):
		to, covers = atMost(most), "a first step towards room for those in the accept queue"
	case dropped == 0:
	case to > bound:
		to = bound
		covers += fmt.Sprintf(", as a first step: how many clients the %s are is not known, the same ones try again and again", phrase.Count(j.overflowed(), "dropped packet"))
	default:
		covers += ", and " + whose
	}
	return to, covers
}

// atMost is how far one step raises a limit: what is right for ten times as many
// clients is not known from the clients of today.
func atMost(limit int) int { return max(10*limit, 10) }

// beforeRaising is what to know of a new limit: the descriptors that it takes, and
// that the one in force may be above it.
func (j *judge) beforeRaising(to int) string {
	limit, least := j.Now.Connector.MaxConnections, ""
	if limit.Kind == model.SourceInferred && limit.Uncertain {
		least = phrase.Sprintf("%d is the least that the limit in force can be, as connections that clients reset may hold more slots: look it up first (maxConnections of the connector, by JMX).", limit.Value)
	}
	return phrase.Sentences(least, filesFor(j.Now, to))
}
