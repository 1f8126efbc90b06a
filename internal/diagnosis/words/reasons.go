package words

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Idle distinguishes those that were served once from those that never sent a
// request. Of those that were served it is not known that they are kept alive for another request:
// until keepAliveTimeout is over, a WebSocket that says nothing looks the same.
func Idle(l *model.Listener) string {
	idle, silent := reading.Phase(l, model.Idle), reading.Silent(l)
	switch {
	case reading.MostlyRecent(l):
		return ofThem(l, idle) + phrase.Sprintf(" idle at the moment (%d %s used within the last 2 s)", l.Connections.Recent, phrase.Verb(l.Connections.Recent, "was", "were"))
	case silent == 0:
		return ofThem(l, idle) + " idle"
	case silent >= idle:
		return ofThem(l, idle) + " idle, without a request yet"
	}
	return ofThem(l, idle) + phrase.Sprintf(" idle (%d without a request yet)", silent)
}

// ofThem are some of the connections that are held: "12 of them", "all of them", or of one
// that is the only one "which is".
func ofThem(l *model.Listener, n int) string {
	slots, ok := reading.SlotsInUse(l)
	switch {
	case !ok || n < slots:
		return phrase.Sprintf("%d of them", n)
	case slots == 1:
		return "which is"
	}
	return "all of them"
}

// Connections is the present count where it shows the limit reached, else
// the fact that it was.
func Connections(s *symptoms.Symptoms) string {
	n, ok := reading.SlotsInUse(s.Now)
	if !ok || reading.ConnectionLimit(s.Now) != reading.LimitKnown || !s.ConnectionsFull {
		return "the limit of connections was reached"
	}
	if reading.UncertainLimit(s.Now) && s.Now.Connector.MaxConnections.Kind == model.SourceInferred {
		return phrase.Sprintf("the limit of connections was reached, with %d or more held", n)
	}
	most := s.Now.Connector.MaxConnections.Value
	holds, aside := "holds", ""
	if r := s.Now.Connections.Reset; r != nil && *r > 0 {
		holds = "seems to hold"
		aside = phrase.Sprintf(" (%d seen; %s without a socket, as after a client's reset)", n-*r, phrase.Count(*r, "descriptor"))
	}
	text := phrase.Sprintf("%s %s %d of %d connections", reading.ServerName(s.Now), holds, n, most)
	if most == 1 {
		text = phrase.Sprintf("%s %s the one connection it may", reading.ServerName(s.Now), holds)
	}
	text += aside
	switch {
	case reading.SlotsOfLeft(s.Now) > 0:
		text += ", " + ofThem(s.Now, reading.SlotsOfLeft(s.Now)) + " of clients that have closed: their requests were read, and nobody completes them"
	case s.SlotsWithoutThread() && reading.MostlyOutlived(s.Now):
		text += ", " + ofThem(s.Now, s.Now.Connections.Outlived) + " quiet for longer than keepAliveTimeout allows"
	case s.SlotsWithoutThread():
		text += ", " + ofThem(s.Now, reading.Phase(s.Now, model.Unclassified)) + " unanswered and without a thread"
	}
	return text
}

// BehindConnections continues with the threads when the chain does.
func BehindConnections(s *symptoms.Symptoms, v model.Verdict) string {
	if !slices.Contains(v.Chain, model.CauseMaxThreads) {
		return ""
	}
	if reading.WaitingRequests(s.Now) > 0 {
		return " while " + Threads(s)
	}
	most, _ := reading.MaxThreads(s.Now)
	return " while " + AllThreads(most) + " busy"
}

// Files says how many files are open.
func Files(s *symptoms.Symptoms) string {
	used, most, ok := reading.OpenFiles(s.Now)
	if !ok || !s.OutOfFiles {
		return "the process had no file descriptor left for accept()"
	}
	text := phrase.Sprintf("%d of %d files are open and accept() fails", used, most)
	if n, ok := reading.SlotsInUse(s.Now); ok && reading.ConnectionLimit(s.Now) == reading.LimitKnown {
		text += phrase.Sprintf(", with %d of %d connections", n, s.Now.Connector.MaxConnections.Value)
	}
	return text
}

// RoomInside is the proof that no limit behind the queue was reached.
func RoomInside(s *symptoms.Symptoms) string {
	n, ok := reading.SlotsInUse(s.Now)
	switch {
	case !ok:
		return ""
	case reading.ConnectionLimit(s.Now) == reading.LimitKnown:
		return phrase.Sprintf(", with %d of %d connections taken now", n, s.Now.Connector.MaxConnections.Value)
	case reading.ConnectionLimit(s.Now) == reading.LimitNone:
		return phrase.Sprintf(", with %s now and no limit on them", phrase.Count(n, "connection"))
	}
	return ""
}
