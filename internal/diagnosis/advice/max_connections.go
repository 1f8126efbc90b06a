package advice

import (
	"fmt"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// LeaveInside says that those who are let in, or wait to be, do not wait for their answer, "" where that is not so.
func LeaveInside(s *symptoms.Symptoms) string {
	switch n, _ := s.Unanswered(); {
	case s.LeaveInside():
		return phrase.Sprintf("%s that were let in left before their answer", phrase.Count(n, "client"))
	case s.ClosedInside():
		return "the clients of as many as half of the connections have closed while their requests were in service"
	case s.ClosedInQueue():
		return leftInQueue(s)
	}
	return ""
}

func leftInQueue(s *symptoms.Symptoms) string {
	q := s.Now.AcceptQueue
	return phrase.Sprintf("the clients of %d of the %d connections in the accept queue have closed", min(q.Left, q.Length), q.Length)
}

// LeaveInsideSteps are for requests that take longer than their clients' patience, as with a lock that one has at a time,
// which more room makes worse; or they would not, if all were let in at once.
func LeaveInsideSteps(s *symptoms.Symptoms, to int) []model.Step {
	see := DumpStep(s, "See what the requests wait for: "+LeaveInside(s))
	if where := StuckAt(s); where != "" {
		see = Action(phrase.Sprintf("Look at %s, where most of the requests wait: %s", where, LeaveInside(s)))
	}
	do := []model.Step{see, Action("Shorten that, or let it fail sooner than these clients give up")}
	if !RoomInVain(s) {
		do = append(do, OnlyIfApart(s, to))
	}
	return do
}

// LeaveInsideNot is what does not help these clients.
func LeaveInsideNot(s *symptoms.Symptoms) string {
	if RoomInVain(s) {
		return "A larger " + MaxConnectionsSetting().Name(s.Now) + " or acceptCount: it fills as well, with requests whose clients have left."
	}
	return "A larger acceptCount: more clients would leave before their answer."
}

// RoomInVain means that of more who are let in none would have an answer in time: a connection is held for longer, by how
// fast they are taken out of the queue, than the most patient of those who left waited. Where that is not known the slots tell,
// if their clients have left.
func RoomInVain(s *symptoms.Symptoms) bool {
	slots, counted := reading.SlotsInUse(s.Now)
	rate, known := AcceptRate(s)
	if q := s.Now.AcceptQueue; known && counted && q.Patience >= leastPatience {
		return rateTime(slots, rate) >= q.Patience
	}
	return s.ClosedInside()
}

// leastPatience: who ends its side sooner has most likely not left.
const leastPatience = 500 * time.Millisecond

// OnlyIfApart is room for more, with its condition.
func OnlyIfApart(s *symptoms.Symptoms, to int) model.Step {
	return Action("Only if the requests do not wait for one another (a lock, a pool), raise " + MaxConnectionsSetting().FromTo(s.Now, s.Now.Connector.MaxConnections.Value, to))
}

// RaiseConnections is the change of maxConnections, after that of the open files if those
// would not suffice.
func RaiseConnections(s *symptoms.Symptoms, text string, to int) []model.Step {
	in := s.Now.Connector.MaxConnections
	return append(FilesStep(s, to), MaxConnectionsSetting().Change(s, in, text, in.Value, to))
}

// Connections is what to change where all are taken.
func Connections(s *symptoms.Symptoms, v model.Verdict) string {
	if reading.ConnectionLimit(s.Now) != reading.LimitKnown {
		return Unknown(s)
	}
	to, covers := ConnectionsWanted(s)
	change := MaxConnectionsSetting().FromTo(s.Now, s.Now.Connector.MaxConnections.Value, to)
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
	case (!threads || !s.ThreadsFull && RoomInVain(s)) && LeaveInside(s) != "":
		shorten := phrase.Capital(LeaveInside(s)) + ": shorten what the requests wait for, or let it fail sooner than these clients give up. "
		if RoomInVain(s) {
			return shorten + LeaveInsideNot(s)
		}
		return shorten +
			"Where they wait for one another (a lock, a pool), more room is room for more that leave, and a smaller " + MaxConnectionsSetting().Name(s.Now) + " has those inside served in time. Only where they do not, raise " + change + "."
	case threads && reading.GivenUp(s.Now) > 0:
		raise = phrase.Sprintf("Threads first (see max_threads). The clients of %d of the %d requests that wait have given up: more room inside is room for more of these. A %s below what can be served within the clients' timeout would have the others served.", reading.GivenUp(s.Now), reading.WaitingRequests(s.Now), MaxConnectionsSetting().Name(s.Now))
	case threads && s.ThreadsFull && s.QueueOfLeft():
		raise = "Threads first (see max_threads). " + phrase.Capital(leftInQueue(s)) + ": more room inside is room for more that leave before their answer."
	case threads && s.ThreadsFull && s.Overflowed() > 0:
		raise = "Threads first (see max_threads): they decide how fast clients are served. Raising " + change + " lets those in that are now turned away, to wait inside: " + covers + "."
	case threads && s.ThreadsFull:
		raise = "Threads first (see max_threads). Raising " + change + " only moves the wait from the accept queue into " + reading.ServerName(s.Now) + "."
	case threads:
		raise = "Raise " + change + " (" + covers + ") together with " + MaxThreadsSetting().Name(s.Now) + ": every thread is busy as well, those let in would only wait inside."
	case s.WaitsUnseen():
		raise = "See what the requests wait for: whether they are answered in time is not known without handshakes. Only if they do not wait for one another (a lock, a pool), raise " + change + ": " + covers + "."
	}
	moments := ""
	if reading.IdleForMoments(s.Now) {
		moments = "Most connections are idle for moments only: between two pieces of a response, or WebSockets that talk, which a shorter keepAliveTimeout does not end."
	}
	return phrase.Sentences(raise, moments, BeforeRaising(s, to), AcceptCountInVain(s))
}

// shorterRequests: connectionTimeout is how long a client may take to send one.
func shorterRequests(s *symptoms.Symptoms) string {
	name := ConnectionTimeoutSetting().Name(s.Now)
	if t := s.Now.Connector.ConnectionTimeout; t != nil && t.Value > 0 && t.Value <= ShortTimeout {
		return fmt.Sprintf("%s ends them after %s already", name, phrase.Seconds(t.Value))
	}
	return "lower " + name + " to " + phrase.Seconds(ShortTimeout)
}
