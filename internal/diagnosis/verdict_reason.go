package diagnosis

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// idlePhrase distinguishes those that were served once from those that never sent a
// request. Of the former it is not known that they are kept alive for another request:
// until keepAliveTimeout is over, a WebSocket that says nothing looks the same.
func idlePhrase(l *model.Listener) string {
	idle, silent := reading.Phase(l, model.Idle), reading.Silent(l)
	switch {
	case reading.MostlyRecent(l):
		return phrase.Sprintf("%d of them idle at the moment (%d were used within the last 2 s)", idle, l.Connections.Recent)
	case silent == 0:
		return phrase.Sprintf("%d of them idle", idle)
	case silent >= idle:
		return phrase.Sprintf("%d of them idle, whose clients have sent nothing yet", idle)
	}
	return phrase.Sprintf("%d of them idle (the clients of %d have sent nothing yet)", idle, silent)
}

// connectionsPhrase: the present count where it shows the limit reached, else
// the fact that it was.
func (j *judge) connectionsPhrase() string {
	n, ok := reading.Held(j.Now)
	if !ok || reading.ConnectionLimit(j.Now) != reading.LimitKnown || !j.connectionsFull {
		return "maxConnections was reached"
	}
	most := j.Now.Connector.MaxConnections.Value
	holds, aside := "holds", ""
	if r := j.Now.Connections.Reset; r != nil && *r > 0 {
		holds = "seems to hold"
		aside = phrase.Sprintf(" (%d seen; %s without a socket, as after a client's reset)", n-*r, phrase.Count(*r, "descriptor"))
	}
	s := phrase.Sprintf("%s %s %d of %d connections", reading.ServerName(j.Now), holds, n, most)
	if most == 1 {
		s = phrase.Sprintf("%s %s the one connection it may (maxConnections=1)", reading.ServerName(j.Now), holds)
	}
	s += aside
	switch {
	case reading.OfTheGone(j.Now) > 0:
		s += phrase.Sprintf(", %d of them of clients that have closed: their requests were read, and nobody completes them", reading.OfTheGone(j.Now))
	case j.slotsWithoutThread() && reading.MostlyOutlived(j.Now):
		s += phrase.Sprintf(", %d of them quiet for longer than keepAliveTimeout allows", j.Now.Connections.Outlived)
	case j.slotsWithoutThread():
		s += phrase.Sprintf(", %d of them unanswered and without a thread", reading.Phase(j.Now, model.Unclassified))
	}
	return s
}

// behindConnections continues with the threads when the chain does.
func (j *judge) behindConnections(v model.Verdict) string {
	if !slices.Contains(v.Chain, model.CauseMaxThreads) {
		return ""
	}
	if reading.WaitingRequests(j.Now) > 0 {
		return " while " + j.threadsPhrase()
	}
	most, _ := reading.MaxThreads(j.Now)
	return " while " + allThreads(most) + " busy"
}

func (j *judge) filesPhrase() string {
	used, most, ok := reading.OpenFiles(j.Now)
	if !ok || !j.filesFull {
		return "the process had no file descriptor left for accept()"
	}
	s := phrase.Sprintf("%d of %d files are open and accept() fails", used, most)
	if n, ok := reading.Held(j.Now); ok && reading.ConnectionLimit(j.Now) == reading.LimitKnown {
		s += phrase.Sprintf(", with %d of %d connections", n, j.Now.Connector.MaxConnections.Value)
	}
	return s
}

// roomInside is the proof that no limit behind the queue was reached.
func (j *judge) roomInside() string {
	n, ok := reading.Held(j.Now)
	switch {
	case !ok:
		return ""
	case reading.ConnectionLimit(j.Now) == reading.LimitKnown:
		return phrase.Sprintf(", with %d of %d connections taken now", n, j.Now.Connector.MaxConnections.Value)
	case reading.ConnectionLimit(j.Now) == reading.LimitNone:
		return phrase.Sprintf(", with %s now and no limit on them", phrase.Count(n, "connection"))
	}
	return ""
}
