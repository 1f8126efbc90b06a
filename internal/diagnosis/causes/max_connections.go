package causes

import (
	"fmt"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxConnectionsReached: Tomcat holds all the connections it may.
func maxConnectionsReached() Cause {
	return Cause{
		Name: model.CauseMaxConnections,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) Certainty {
				return max(When(m.AtLatch(), Surely), When(m.AtLimit() || m.TurnsOver(), Possibly))
			},
			refuted: []refutation[*evidence.Moment]{{inAccept, (*evidence.Moment).Accepting}},
		},
		dropped: []refutation[*symptoms.Symptoms]{{standsToo, suspended}},
		rests:   restsOnAcceptor,
		around:  rule[reading.Pair]{holds: func(p reading.Pair) Certainty { return When(p.Either(p.AtConnectionLimit), Surely) }},
		Now:     rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty { return When(s.ConnectionsFull, Surely) }},
		Near:    (*symptoms.Symptoms).ConnectionsHigh,
		Full:    maxConnectionsFull,
		Depth:   30,
		Because: func(s *symptoms.Symptoms, v model.Verdict) string {
			idle := ""
			if s.ConnectionsFull && idleForMoments(s) {
				idle = ", " + words.Idle(s.Now)
			}
			return " because " + words.Connections(s) + idle + words.BehindConnections(s, v)
		},
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.ConnectionsEvidence(s, model.CauseMaxConnections, v)
		},
		Advice: adviseConnections,
		Steps:  maxConnectionsSteps,
		Book: Runbook{
			Title:     "all connections are taken",
			Seen:      "Tomcat holds maxConnections connections and the accept queue is not empty.",
			Clients:   "Waits in the accept queue; when it is full, connect timeouts.",
			Check:     "Whether the threads are busy too. The chain shows it: fix the last stage of the chain first.",
			Change:    "Raise `server.tomcat.max-connections` (each takes a file descriptor), or fix what is behind it.",
			Vain:      "Raising connectionTimeout or acceptCount.",
			Holds:     "the acceptor waits at the connection limit in two readings; or maxConnections connections are held, and clients wait; or connections are taken only as others end, while as many are held, by count and count",
			Otherwise: "slow_accept or accept_queue",
		},
	}
}

func maxConnectionsSteps(s *symptoms.Symptoms, v model.Verdict) (do []model.Step, not string) {
	if reading.ConnectionLimit(s.Now) != reading.LimitKnown {
		return unknownSteps(s), ""
	}
	threads := slices.Contains(v.Chain, model.CauseMaxThreads)
	to, _ := advice.ConnectionsWanted(s)
	raise := func(text string) []model.Step { return raiseConnections(s, text, to) }
	switch {
	case s.Unacknowledged() && 2*reading.Unacknowledged(s.Now) > s.Now.Connections.Accepted:
		return advice.UnacknowledgedSteps(), advice.MaxConnectionsSetting().Name(s.Now) + ": a larger limit fills as well."
	case reading.SlotsOfLeft(s.Now) > 0:
		do = append(do, advice.Action("Have the application complete its asynchronous requests, or give them a timeout (AsyncContext.setTimeout, spring.mvc.async.request-timeout): their clients have closed"))
		return do, advice.MaxConnectionsSetting().Name(s.Now) + ": a larger limit fills as well."
	case s.SlotsWithoutThread() && reading.MostlyOutlived(s.Now):
		do = append(do, advice.Action("Limit the connections that the application keeps open (an idle timeout of the WebSocket session)"))
		return append(do, raise("Or give them room")...), advice.AcceptCountNot(s)
	case s.SlotsWithoutThread():
		if t := s.Now.Connector.ConnectionTimeout; t == nil || t.Value <= 0 || t.Value > advice.ShortTimeout {
			do = append(do, advice.ConnectionTimeoutSetting().ChangeTime(s, t, "Where their clients never finish a request, end these sooner", advice.ShortTimeout))
		}
		return append(do, raise("If they are WebSockets or answered asynchronously, give them room")...), advice.AcceptCountNot(s)
	case !threads && leaveInside(s) != "":
		return leaveInsideSteps(s, to), "A larger acceptCount: more clients would leave before their answer."
	case threads && s.ThreadsFull && s.Overflowed() > 0:
		do = threadSteps(s, v)
		if reading.GivenUp(s.Now) > 0 {
			return do, "A larger " + advice.MaxConnectionsSetting().Name(s.Now) + " or acceptCount: those who wait give up before a thread comes, and more would."
		}
		return append(do, raise("Then let in those that are turned away")...), advice.AcceptCountNot(s)
	case threads && s.ThreadsFull:
		return threadSteps(s, v), advice.MaxConnectionsSetting().Name(s.Now) + ": it only moves the wait from the accept queue into " + reading.ServerName(s.Now) + "."
	case threads:
		do = raise("Let more clients in")
		most, _ := reading.MaxThreads(s.Now)
		return append(do, advice.MaxThreadsSetting().Change(s, s.Now.Connector.MaxThreads, "Raise the number of threads with it: all of them are busy, too", most, max(to, most+1))), advice.AcceptCountNot(s)
	case s.WaitsUnseen():
		return []model.Step{
			advice.DumpStep(s, "See what the requests wait for: whether they are answered in time is not known without handshakes"),
			onlyIfApart(s, to),
		}, advice.AcceptCountNot(s)
	}
	return raise("Let more clients in"), advice.AcceptCountNot(s)
}

// leaveInside says that those who are let in, or wait to be, do not wait for their answer, "" where that is not so.
func leaveInside(s *symptoms.Symptoms) string {
	switch n, _ := s.Unanswered(); {
	case s.LeaveInside():
		return phrase.Sprintf("%s that were let in left before their answer", phrase.Count(n, "client"))
	case s.ClosedInside():
		return "the clients of as many as half of the connections have closed while their requests were in service"
	case s.ClosedInQueue():
		return phrase.Sprintf("the clients of %d of the %d connections in the accept queue have closed", min(s.Now.AcceptQueue.Left, s.Now.AcceptQueue.Length), s.Now.AcceptQueue.Length)
	}
	return ""
}

// leaveInsideSteps: the requests take longer than their clients' patience, as with a lock that one has at a time, which
// more room makes worse; or they would not, if all were let in at once.
func leaveInsideSteps(s *symptoms.Symptoms, to int) []model.Step {
	see := advice.DumpStep(s, "See what the requests wait for: "+leaveInside(s))
	if where := advice.StuckAt(s); where != "" {
		see = advice.Action(phrase.Sprintf("Look at %s, where most of the requests wait: %s", where, leaveInside(s)))
	}
	return []model.Step{
		see,
		advice.Action("Shorten that, or let it fail sooner than these clients give up"),
		onlyIfApart(s, to),
	}
}

// onlyIfApart is room for more, with its condition.
func onlyIfApart(s *symptoms.Symptoms, to int) model.Step {
	return advice.Action("Only if the requests do not wait for one another (a lock, a pool), raise " + advice.MaxConnectionsSetting().FromTo(s.Now, s.Now.Connector.MaxConnections.Value, to))
}

// raiseConnections is the change of maxConnections, after that of the open files if those
// would not suffice.
func raiseConnections(s *symptoms.Symptoms, text string, to int) []model.Step {
	in := s.Now.Connector.MaxConnections
	return append(advice.FilesStep(s, to), advice.MaxConnectionsSetting().Change(s, in, text, in.Value, to))
}

func adviseConnections(s *symptoms.Symptoms, v model.Verdict) string {
	if reading.ConnectionLimit(s.Now) != reading.LimitKnown {
		return advice.Unknown(s)
	}
	to, covers := advice.ConnectionsWanted(s)
	change := advice.MaxConnectionsSetting().FromTo(s.Now, s.Now.Connector.MaxConnections.Value, to)
	raise := "Raise " + change + ": " + covers + "."
	if n := reading.Unacknowledged(s.Now); n > 0 && s.Unacknowledged() && 2*n > s.Now.Connections.Accepted {
		return phrase.Sentences(phrase.Capital(words.Unacknowledged(s))+": their hosts or networks are gone (see unacknowledged), and each keeps its slot for some 15 minutes (net.ipv4.tcp_retries2).",
			"Have the application end streams whose client does not answer (a heartbeat that the client acknowledges, or a lifetime), or lower net.ipv4.tcp_retries2 (8 is some 100 s). A larger maxConnections fills as well.")
	}
	if n := reading.SlotsOfLeft(s.Now); n > 0 {
		return phrase.Sprintf("%d of the slots are those of clients that have closed, more than there are threads: asynchronous requests that nobody completes. Have the application complete them, or give them a timeout (AsyncContext.setTimeout, spring.mvc.async.request-timeout). A larger maxConnections fills as well.", n)
	}
	switch threads := slices.Contains(v.Chain, model.CauseMaxThreads); {
	case s.SlotsWithoutThread() && reading.MostlyOutlived(s.Now):
		n, _ := reading.SlotsInUse(s.Now)
		raise = phrase.Sprintf("%d of the %d connections were answered and have been quiet for longer than keepAliveTimeout allows: WebSockets, or others that the application keeps open, which no timeout of the connector ends. ", s.Now.Connections.Outlived, n) +
			"Limit them in the application (an idle timeout of the WebSocket session), or raise " + change + "."
	case s.SlotsWithoutThread():
		n, _ := reading.SlotsInUse(s.Now)
		raise = phrase.Sprintf("At least %d of the %d connections hold a slot and no thread. If their clients never finish a request, ", reading.Phase(s.Now, model.Unclassified), n) +
			shorterRequests(s) + "; if they are WebSockets or answered asynchronously, raise " + change + "."
	case !threads && leaveInside(s) != "":
		return phrase.Capital(leaveInside(s)) + ": shorten what the requests wait for, or let it fail sooner than these clients give up. " +
			"Where they wait for one another (a lock, a pool), more room is room for more that leave, and a smaller " + advice.MaxConnectionsSetting().Name(s.Now) + " has those inside served in time. Only where they do not, raise " + change + "."
	case threads && reading.GivenUp(s.Now) > 0:
		raise = phrase.Sprintf("Threads first (see max_threads). The clients of %d of the %d requests that wait have given up: more room inside is room for more of these. A %s below what can be served within the clients' timeout would have the others served.", reading.GivenUp(s.Now), reading.WaitingRequests(s.Now), advice.MaxConnectionsSetting().Name(s.Now))
	case threads && s.ThreadsFull && s.Overflowed() > 0:
		raise = "Threads first (see max_threads): they decide how fast clients are served. Raising " + change + " lets those in that are now turned away, to wait inside: " + covers + "."
	case threads && s.ThreadsFull:
		raise = "Threads first (see max_threads). Raising " + change + " only moves the wait from the accept queue into " + reading.ServerName(s.Now) + "."
	case threads:
		raise = "Raise " + change + " (" + covers + ") together with " + advice.MaxThreadsSetting().Name(s.Now) + ": every thread is busy as well, those let in would only wait inside."
	case s.WaitsUnseen():
		raise = "See what the requests wait for: whether they are answered in time is not known without handshakes. Only if they do not wait for one another (a lock, a pool), raise " + change + ": " + covers + "."
	}
	moments := ""
	if idleForMoments(s) {
		moments = "Most connections are idle for moments only: between two pieces of a response, or WebSockets that talk, which a shorter keepAliveTimeout does not end."
	}
	return phrase.Sentences(raise, moments, advice.BeforeRaising(s, to), advice.AcceptCountInVain(s))
}

// idleForMoments: most connections are idle at the moment, and may be in service.
func idleForMoments(s *symptoms.Symptoms) bool {
	n, ok := reading.SlotsInUse(s.Now)
	return ok && model.MostlyIdle(reading.Phase(s.Now, model.Idle), n) && s.Now.Connections.MostlyMaybeBusy()
}

// shorterRequests: connectionTimeout is how long a client may take to send one.
func shorterRequests(s *symptoms.Symptoms) string {
	name := advice.ConnectionTimeoutSetting().Name(s.Now)
	if t := s.Now.Connector.ConnectionTimeout; t != nil && t.Value > 0 && t.Value <= advice.ShortTimeout {
		return fmt.Sprintf("%s ends them after %s already", name, phrase.Seconds(t.Value))
	}
	return "lower " + name + " to " + phrase.Seconds(advice.ShortTimeout)
}

const inAccept = "the acceptor was in accept() in both readings"

// restsOnAcceptor: on the acceptor where that shows the limit, else on the count.
func restsOnAcceptor(m *evidence.Moment) evidence.Strength {
	if m.AtLatch() {
		return evidence.StrengthAcceptor
	}
	return evidence.StrengthPhases
}
