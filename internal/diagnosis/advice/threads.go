package advice

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// FewerSteps let fewer clients wait inside than have the patience for it, where the threads stay as they are. Those whose clients
// are still there are as many as are served within that patience, and the last of them is
// served when it is over: half of them.
func FewerSteps(s *symptoms.Symptoms) []model.Step {
	left := reading.GivenUp(s.Now)
	most, known := reading.MaxThreads(s.Now)
	if left == 0 || !known || reading.ConnectionLimit(s.Now) == reading.LimitUnknown {
		return nil
	}
	to := max((most+reading.WaitingRequests(s.Now)-left)/2, most+1)
	in := s.Now.Connector.MaxConnections
	text := "If neither can be, let fewer wait: " + LeftInLine(left, reading.WaitingRequests(s.Now))
	if in.Value > 0 && to >= in.Value {
		return nil
	}
	return []model.Step{MaxConnectionsSetting().Change(s, in, text, in.Value, to)}
}

// LeftInLine says that left of all requests that wait are of clients that have left.
func LeftInLine(left, all int) string {
	of := phrase.Sprintf("%d of the %d requests that wait", left, all)
	switch {
	case all == 1:
		of = "the one request that waits"
	case left == all:
		of = phrase.Sprintf("all %d requests that wait", all)
	}
	if left == 1 {
		return "the client of " + of + " has given up, and it is served all the same"
	}
	return "the clients of " + of + " have given up, and these are served all the same"
}

// beforeCalls is what to find out of the file or the socket that n threads wait for.
func beforeCalls(s *symptoms.Symptoms, w *model.Workers, n int) model.Step {
	if w.Call() == model.UDPReceive && w.UDPPeer.Port() == words.DNSPort {
		return Action(phrase.Sprintf("See why the name server %s does not answer, and which name it is asked (/etc/resolv.conf and the host names in the application's settings)", w.UDPPeer.Addr()))
	}
	what := "file it is, as of a mount or a pipe that does not answer"
	if w.Call().OnSocket() {
		what = "server it is that does not answer"
	}
	return DumpStep(s, phrase.Sprintf("See which %s: %s %s", what, phrase.Count(n, "thread"), words.BlockedIn(w, n)))
}

// BeforeThreads is what to look at before the number of threads is changed.
func BeforeThreads(s *symptoms.Symptoms, v model.Verdict) []model.Step {
	if n := s.InCalls(); n > 0 {
		return []model.Step{beforeCalls(s, reading.DownstreamOf(s.Now).Workers, n)}
	}
	if n, sends := s.ForClients(); n > 0 {
		what := "requests, which then come at once"
		if sends {
			what = "responses, or send less"
		}
		return []model.Step{Action(phrase.Sprintf("Let a proxy in front buffer the %s: %s %s", what, phrase.Count(n, "thread"), words.ForClients(n, sends)))}
	}
	switch {
	case s.Waits.Possible != model.CauseNone:
		return []model.Step{Action(phrase.Sprintf("Look at %s: the threads may wait for it", words.WaitPeer(s)))}
	case s.Paused():
		return []model.Step{Action("See why the JVM stands still so often (-Xlog:gc,safepoint)")}
	case s.CPUShortBeside(v.Cause):
		return []model.Step{Action("Give the process more CPU: its threads wait for one")}
	case s.Inside() == 0:
		return nil
	}
	if down := words.Unconnected(s.Now); down != "" {
		return []model.Step{Action(phrase.Sprintf("Find out whether %s can be reached: no connection to it is open", down))}
	}
	if where := StuckAt(s); where != "" {
		return []model.Step{Action(phrase.Sprintf("Look at %s, where most of the threads wait: at what it waits for, and who has that", where))}
	}
	n := s.Inside()
	return []model.Step{DumpStep(s, phrase.Sprintf("See what the %s %s for", phrase.Count(n, "thread"), phrase.Verb(n, "waits", "wait")))}
}

// StuckAt is the method at which most of the busy threads are, "" where the JVM was not
// asked.
func StuckAt(s *symptoms.Symptoms) string {
	g := reading.StacksOf(s.Now).BusyGroup()
	switch {
	case g == nil:
		return ""
	case g.Application != "":
		return model.ShortMethod(g.Application)
	}
	return model.ShortMethod(g.Library)
}

// AcceptCountNot is the change that everybody tries first.
func AcceptCountNot(s *symptoms.Symptoms) string {
	switch {
	case reading.Queued(s.Now) > 0:
		return "acceptCount: clients only wait longer, nobody is served faster."
	case reading.WaitingRequests(s.Now) > 0:
		return "acceptCount: the accept queue is empty, requests wait inside " + reading.ServerName(s.Now) + "."
	}
	return "acceptCount: nothing waits in the accept queue."
}

// PastPatience says that what waits is longer than its clients' patience.
func PastPatience(s *symptoms.Symptoms) string {
	n := reading.GivenUp(s.Now)
	if n == 0 {
		return ""
	}
	return phrase.Sprintf("The clients of %d of the %d requests that wait have given up, and these are served all the same, before those that come now: let no more of them wait (%s) than are served within the clients' timeout.",
		n, reading.WaitingRequests(s.Now), MaxConnectionsSetting().Name(s.Now))
}

// ThreadsAdvised is a maxThreads above the one in force, and what it is enough for.
func ThreadsAdvised(s *symptoms.Symptoms) (to int, effect string) {
	most, _ := reading.MaxThreads(s.Now)
	to, effect = threadsNow(s)
	if steady := Steady(s, reading.StageMaxThreads, most, to); steady > to {
		return steady, "enough for what has waited at most since the trouble began"
	}
	return to, effect
}

// threadsNow is the same for those that wait now.
func threadsNow(s *symptoms.Symptoms) (to int, effect string) {
	most, _ := reading.MaxThreads(s.Now)
	busy, seen := reading.BusyThreads(s.Now)
	waiting := reading.WaitingForThread(s.Now)
	to, effect = RoundUp(most+waiting), "then every request now inside has a thread"
	switch {
	case reading.Hidden(s.Now):
		return max(to, Spare(most)), "a first step, since not all waiting requests can be seen"
	case waiting == 0 || seen && busy+waiting <= most:
		return Spare(most), "a quarter more than there are"
	case most+waiting > 5*most:
		return 2 * most, fmt.Sprintf("that halves the wait; a thread for every request now inside would take %d", to)
	}
	return to, effect
}
