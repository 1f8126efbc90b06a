package advice

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// ShortTimeout is what a server that runs out of connections may grant a client
// that sends nothing.
const ShortTimeout = 5 * time.Second

// ConnectionsWanted is a maxConnections above the one in force, and what it is
// enough for: the clients for which there was no room, where they were counted.
func ConnectionsWanted(s *symptoms.Symptoms) (to int, covers string) {
	to, covers = connectionsNow(s)
	if steady := Steady(s, reading.StageMaxConnections, s.Now.Connector.MaxConnections.Value, to); steady > to {
		return steady, "room for the most that have come since the trouble began"
	}
	return to, covers
}

// connectionsNow is the same for those that come now.
func connectionsNow(s *symptoms.Symptoms) (to int, covers string) {
	clients, known := s.WithoutRoom()
	if !known {
		return connectionsForPackets(s)
	}
	most := s.Now.Connector.MaxConnections.Value
	to = max(Spare(here(s)+int(clients)), most+1)
	who := words.OrMore(s, clients)
	if step := AtMost(most); to > step {
		return step, "a first step towards room for the " + who + " for which there was none"
	}
	return to, "room for those inside, those in the accept queue, and the " + who + " for which there was none"
}

// here are the clients inside and those in the accept queue.
func here(s *symptoms.Symptoms) int {
	n, _ := reading.SlotsInUse(s.Now)
	return max(n, s.Now.Connector.MaxConnections.Value) + reading.Queued(s.Now)
}

// connectionsForPackets: a dropped packet stands for one client at most, and many
// of them are retransmissions: so the packets of the worst second, in which no
// client repeats one, where they were counted. A step is bounded in any case.
func connectionsForPackets(s *symptoms.Symptoms) (to int, covers string) {
	most := s.Now.Connector.MaxConnections.Value
	here := here(s)
	dropped, whose := s.Overflowed(), "for one client per dropped packet, the most there can have been"
	if b := s.Losses().Burst; b > 0 && b < dropped {
		dropped, whose = b, fmt.Sprintf("for the clients of the worst second, which dropped %s", phrase.Count(b, "packet"))
	}
	to, covers = max(Spare(here+int(dropped)), most+1), "room for those inside and those in the accept queue"
	switch bound := min(max(s.T.ConnectionsMost, RoundUp(2*here)), AtMost(most)); {
	case dropped == 0 && to > AtMost(most):
		to, covers = AtMost(most), "a first step towards room for those in the accept queue"
	case dropped == 0:
	case to > bound:
		to = bound
		covers += fmt.Sprintf(", as a first step: how many clients the %s are is not known, the same ones try again and again", phrase.Count(s.Overflowed(), "dropped packet"))
	default:
		covers += ", and " + whose
	}
	return to, covers
}

// AtMost is how far one step raises a limit: what is right for ten times as many
// clients is not known from the clients of today.
func AtMost(limit int) int { return max(10*limit, 10) }

// BeforeRaising is what to know of a new limit: the descriptors that it takes, and
// that the one in force may be above it.
func BeforeRaising(s *symptoms.Symptoms, to int) string {
	limit, least := s.Now.Connector.MaxConnections, ""
	if limit.Kind == model.SourceInferred && limit.Uncertain {
		least = phrase.Sprintf("%d is the least that the limit in force can be, as connections that clients reset may hold more slots: look it up first (maxConnections of the connector, by JMX).", limit.Value)
	}
	return phrase.Sentences(least, filesFor(s.Now, to))
}

// Steady is an advised limit that does not shrink while the trouble lasts: what was
// advised for the same limit before is the least, if the limit in force is the same.
func Steady(s *symptoms.Symptoms, stage string, inForce, to int) int {
	if s.Shown == nil || !s.Shown.Started || s.Shown.Verdict.Status < model.StatusWarning || s.Now.Connector != nil && s.Now.Connector.Processes > 1 {
		return to
	}
	for _, step := range s.Shown.Verdict.Answer.Do {
		before, err := strconv.Atoi(step.To)
		if step.Limit == stage && err == nil && step.From == strconv.Itoa(inForce) {
			return max(to, before)
		}
	}
	return to
}
