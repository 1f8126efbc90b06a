package diagnosis

import (
	"fmt"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxConnectionsReached: Tomcat holds all the connections it may.
func maxConnectionsReached() cause {
	return cause{
		name: model.CauseMaxConnections,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) certainty {
				return max(when(m.AtLatch(), surely), when(m.AtLimit(), possibly))
			},
			refuted: []refutation[*evidence.Moment]{{inAccept, (*evidence.Moment).Accepting}},
		},
		rests:  restsOnAcceptor,
		around: rule[reading.Pair]{holds: func(p reading.Pair) certainty { return when(p.Either(p.AtConnectionLimit), surely) }},
		now:    rule[*judge]{holds: func(j *judge) certainty { return when(j.connectionsFull, surely) }},
		near:   (*judge).connectionsHigh,
		full:   maxConnectionsFull,
		depth:  30,
		because: func(j *judge, v model.Verdict) string {
			idle := ""
			if j.connectionsFull && j.idleForMoments() {
				idle = ", " + idlePhrase(j.Now)
			}
			return " because " + j.connectionsPhrase() + idle + j.behindConnections(v)
		},
		evidence: func(j *judge, v model.Verdict) string { return j.connectionsEvidence(model.CauseMaxConnections, v) },
		advice:   (*judge).adviseConnections,
		steps:    (*judge).maxConnectionsSteps,
		book: Runbook{
			Title:     "all connections are taken",
			Seen:      "Tomcat holds maxConnections connections and the accept queue is not empty.",
			Clients:   "Waits in the accept queue; when it is full, connect timeouts.",
			Check:     "Whether the threads are busy too. The chain shows it: fix the last stage of the chain first.",
			Change:    "Raise `server.tomcat.max-connections` (each takes a file descriptor), or fix what is behind it.",
			Vain:      "Raising connectionTimeout or acceptCount.",
			Holds:     "the acceptor waits at the connection limit in two readings; or maxConnections connections are held, and clients wait",
			Otherwise: "slow_accept or accept_queue",
		},
	}
}

func (j *judge) maxConnectionsSteps(v model.Verdict) (do []model.Step, not string) {
	if reading.ConnectionLimit(j.Now) != reading.LimitKnown {
		return j.unknownSteps(), ""
	}
	threads := slices.Contains(v.Chain, model.CauseMaxThreads)
	to, _ := j.connectionsWanted()
	raise := func(text string) []model.Step { return j.raiseConnections(text, to) }
	switch {
	case reading.OfTheGone(j.Now) > 0:
		do = append(do, action("Have the application complete its asynchronous requests, or give them a timeout (AsyncContext.setTimeout, spring.mvc.async.request-timeout): their clients have closed"))
		return do, "maxConnections: a larger limit fills as well."
	case j.slotsWithoutThread() && reading.MostlyOutlived(j.Now):
		do = append(do, action("Limit the connections that the application keeps open (an idle timeout of the WebSocket session)"))
		return append(do, raise("Or give them room")...), j.acceptCountNot()
	case j.slotsWithoutThread():
		if t := j.Now.Connector.ConnectionTimeout; t == nil || t.Value <= 0 || t.Value > shortTimeout {
			do = append(do, connectionTimeoutSetting().changeTime(j, t, "End the requests that their clients never finish", shortTimeout))
		}
		return append(do, raise("If they are WebSockets or answered asynchronously, give them room")...), j.acceptCountNot()
	case threads && j.threadsFull && j.overflowed() > 0:
		do = j.threadSteps(v)
		if reading.GivenUp(j.Now) > 0 {
			return do, "A larger maxConnections or acceptCount: those who wait give up before a thread comes, and more would."
		}
		return append(do, raise("Then let in those that are turned away")...), j.acceptCountNot()
	case threads && j.threadsFull:
		return j.threadSteps(v), "maxConnections: it only moves the wait from the accept queue into " + reading.ServerName(j.Now) + "."
	case threads:
		do = raise("Let more clients in")
		most, _ := reading.MaxThreads(j.Now)
		return append(do, maxThreadsSetting().change(j, j.Now.Connector.MaxThreads, "With as many threads: every thread is busy as well", most, max(to, most+1))), j.acceptCountNot()
	}
	return raise("Let more clients in"), j.acceptCountNot()
}

// raiseConnections is the change of maxConnections, after that of the open files if those
// would not suffice.
func (j *judge) raiseConnections(text string, to int) []model.Step {
	in := j.Now.Connector.MaxConnections
	return append(j.filesStep(to), maxConnectionsSetting().change(j, in, text, in.Value, to))
}

func (j *judge) adviseConnections(v model.Verdict) string {
	if reading.ConnectionLimit(j.Now) != reading.LimitKnown {
		return j.adviseUnknown()
	}
	to, covers := j.connectionsWanted()
	change := maxConnectionsSetting().fromTo(j.Now, j.Now.Connector.MaxConnections.Value, to)
	raise := "Raise " + change + ": " + covers + "."
	if n := reading.OfTheGone(j.Now); n > 0 {
		return phrase.Sprintf("%d of the slots are those of clients that have closed, more than there are threads: asynchronous requests that nobody completes. Have the application complete them, or give them a timeout (AsyncContext.setTimeout, spring.mvc.async.request-timeout). A larger maxConnections fills as well.", n)
	}
	switch threads := slices.Contains(v.Chain, model.CauseMaxThreads); {
	case j.slotsWithoutThread() && reading.MostlyOutlived(j.Now):
		n, _ := reading.Held(j.Now)
		raise = phrase.Sprintf("%d of the %d connections were answered and have been quiet for longer than keepAliveTimeout allows: WebSockets, or others that the application keeps open, which no timeout of the connector ends. ", j.Now.Connections.Outlived, n) +
			"Limit them in the application (an idle timeout of the WebSocket session), or raise " + change + "."
	case j.slotsWithoutThread():
		n, _ := reading.Held(j.Now)
		raise = phrase.Sprintf("At least %d of the %d connections hold a slot and no thread. If their clients never finish a request, ", reading.Phase(j.Now, model.Unclassified), n) +
			j.shorterRequests() + "; if they are WebSockets or answered asynchronously, raise " + change + "."
	case threads && reading.GivenUp(j.Now) > 0:
		raise = phrase.Sprintf("Threads first (see max_threads). The clients of %d of the %d requests that wait have given up: more room inside is room for more of these. A %s below what can be served within the clients' timeout would have the others served.", reading.GivenUp(j.Now), reading.WaitingRequests(j.Now), maxConnectionsSetting().name(j.Now))
	case threads && j.threadsFull && j.overflowed() > 0:
		raise = "Threads first (see max_threads): they decide how fast clients are served. Raising " + change + " lets those in that are now turned away, to wait inside: " + covers + "."
	case threads && j.threadsFull:
		raise = "Threads first (see max_threads). Raising " + change + " only moves the wait from the accept queue into " + reading.ServerName(j.Now) + "."
	case threads:
		raise = "Raise " + change + " (" + covers + ") together with " + maxThreadsSetting().name(j.Now) + ": every thread is busy as well, those let in would only wait inside."
	}
	moments := ""
	if j.idleForMoments() {
		moments = "Most connections are idle, for moments only: clients that ask again and again, streams, or WebSockets that talk, which a shorter keepAliveTimeout does not end."
	}
	return phrase.Sentences(raise, moments, j.beforeRaising(to), j.acceptCountInVain())
}

// idleForMoments: most connections are idle at the moment, and were used within the last two seconds.
func (j *judge) idleForMoments() bool {
	n, ok := reading.Held(j.Now)
	return ok && model.MostlyIdle(reading.Phase(j.Now, model.Idle), n) && reading.MostlyRecent(j.Now)
}

// shorterRequests: connectionTimeout is how long a client may take to send one.
func (j *judge) shorterRequests() string {
	name := connectionTimeoutSetting().name(j.Now)
	if t := j.Now.Connector.ConnectionTimeout; t != nil && t.Value > 0 && t.Value <= shortTimeout {
		return fmt.Sprintf("%s ends them after %s already", name, phrase.Seconds(t.Value))
	}
	return "lower " + name + " to " + phrase.Seconds(shortTimeout)
}

const inAccept = "the acceptor was in accept() in both readings"

// restsOnAcceptor: on the acceptor where that shows the limit, else on the count.
func restsOnAcceptor(m *evidence.Moment) evidence.Strength {
	if m.AtLatch() {
		return evidence.StrengthAcceptor
	}
	return evidence.StrengthPhases
}
