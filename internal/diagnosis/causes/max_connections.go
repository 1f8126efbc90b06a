package causes

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// maxConnectionsReached: Tomcat holds all the connections it may.
func maxConnectionsReached() Cause {
	return Cause{
		Name: model.CauseMaxConnections,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) Certainty {
				return max(When(m.AtLatch(), Surely), When(m.AtLimit() || m.TurnsOver(), Possibly))
			},
			refuted: []refutation[*evidence.Moment]{{inAccept, (*evidence.Moment).Accepting}, {maybeAtSafepoint, (*evidence.Moment).MayBeAtSafepoint}},
		},
		dropped: []refutation[*symptoms.Symptoms]{{standsToo, allStand}},
		rests:   restsOnAcceptor,
		around:  rule[reading.Pair]{holds: func(p reading.Pair) Certainty { return When(p.Either(p.AtConnectionLimit), Surely) }},
		Now:     rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty { return When(s.ConnectionsFull, Surely) }},
		Near:    (*symptoms.Symptoms).ConnectionsHigh,
		Full:    maxConnectionsFull,
		Depth:   30,
		Because: func(s *symptoms.Symptoms, v model.Verdict) string {
			idle := ""
			if s.ConnectionsFull && reading.IdleForMoments(s.Now) {
				idle = ", " + words.Idle(s.Now)
			}
			return " because " + words.Connections(s) + idle + words.BehindConnections(s, v)
		},
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.ConnectionsEvidence(s, model.CauseMaxConnections, v)
		},
		Advice: advice.Connections,
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
	raise := func(text string) []model.Step { return advice.RaiseConnections(s, text, to) }
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
	case (!threads || !s.ThreadsFull && advice.RoomInVain(s)) && advice.LeaveInside(s) != "":
		return advice.LeaveInsideSteps(s, to), advice.LeaveInsideNot(s)
	case threads && s.ThreadsFull && s.Overflowed() > 0:
		do = threadSteps(s, v)
		if reading.GivenUp(s.Now) > 0 || s.QueueOfLeft() {
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
			advice.OnlyIfApart(s, to),
		}, advice.AcceptCountNot(s)
	}
	return raise("Let more clients in"), advice.AcceptCountNot(s)
}

const (
	inAccept         = "the acceptor was in accept() in both readings"
	maybeAtSafepoint = "the acceptor sleeps as at a safepoint, too, which cannot be seen, and fewer files are open than the limit that the server says, or that is set"
)

// restsOnAcceptor: on the acceptor where that shows the limit, else on the count.
func restsOnAcceptor(m *evidence.Moment) evidence.Strength {
	if m.AtLatch() {
		return evidence.StrengthAcceptor
	}
	return evidence.StrengthPhases
}
