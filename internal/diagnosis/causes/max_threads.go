package causes

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxThreadsBusy: every thread has a request, and requests wait.
func maxThreadsBusy() Cause {
	return Cause{
		Name: model.CauseMaxThreads,
		Now:  rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty { return When(s.ThreadsFull, Surely) }},
		Near: func(s *symptoms.Symptoms) bool { // what waits on hidden connections is not seen
			return s.StageHigh(reading.StageMaxThreads) && (s.Both(s.ThreadsWanted) || s.Both(reading.Hidden) && s.Both(reading.AllThreadsBusy))
		},
		Full: func(s *symptoms.Symptoms, lost model.Cause) bool {
			return s.ThreadsFull || maxConnectionsFull(s, lost) && s.Lasting(reading.AllThreadsBusy)
		},
		Depth:   50,
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string { return " because " + words.Threads(s) },
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.Waits.Cause != model.CauseNone { // its own finding has the stacks
				return words.Join(words.ThreadNumbers(s), words.QueueNumbers(s))
			}
			return words.Join(words.ThreadNumbers(s), words.StackNumbers(s.Now), words.QueueNumbers(s))
		},
		Advice: AdviseThreads,
		Steps:  maxThreadsSteps,
		Book: Runbook{
			Title:     "all threads are busy",
			Seen:      "Requests wait inside Tomcat in two readings, and every worker thread is busy.",
			Clients:   "Slow responses, then read timeouts. No client is refused.",
			Check:     "What the handlers wait for (a database, another service, a lock): `jstack PID` shows where the `http-nio-…-exec-…` threads wait.",
			Change:    "Shorten that wait. Raise `server.tomcat.threads.max` only if what the handlers call has room for more at the same time.",
			Vain:      "acceptCount. It makes clients wait longer in front of the same threads.",
			Holds:     "requests wait in two readings, and the pool is at its maximum with nine tenths of it busy",
			Otherwise: "requests_stand, where requests wait in front of free threads",
		},
	}
}

func maxThreadsSteps(s *symptoms.Symptoms, v model.Verdict) (do []model.Step, not string) {
	return threadSteps(s, v), acceptCountNot(s)
}

// threadSteps are what to do about used up threads: find out what they wait for, then
// shorten it or raise them; where more would wait as well, only shorten it.
func threadSteps(s *symptoms.Symptoms, v model.Verdict) []model.Step {
	switch {
	case s.Waits.Cause == model.CauseDownstream:
		return downstreamSteps(s)
	case s.Waits.Cause == model.CauseConnectionPool:
		return poolSteps(s)
	case reading.Gate(s.Now) != nil:
		return gateSteps(s)
	case s.NoMoreThreads() && s.Now.Connector.MaxThreads.Kind == model.SourceInferred:
		return []model.Step{advice.Action("Raise the limit of threads and processes (pids.max: --pids-limit, podPidsLimit, TasksMax=), then restart: no more threads than these can be started")}
	}
	if s.MoreWouldWait(v.Cause) {
		return []model.Step{advice.Action(moreCPU)}
	}
	first := beforeThreads(s, v)
	if len(first) > 0 && s.ThreadsMayBeVain() {
		return append(first, advice.Action("Make that faster, or let it fail sooner"))
	}
	most, _ := reading.MaxThreads(s.Now)
	to, _ := threadsAdvised(s)
	text := "Shorten what the handlers wait for; if that cannot be, raise the number of threads"
	switch {
	case s.Paused() || s.CPUShortBeside(v.Cause):
		text = "If that is not enough, raise the number of threads"
	case len(first) > 0:
		text = "Make that faster; if it cannot be, raise the number of threads"
	}
	first = append(first, advice.MaxThreadsSetting().Change(s, s.Now.Connector.MaxThreads, text, most, to))
	return append(first, fewerSteps(s)...)
}

// fewerSteps let fewer clients wait inside than have the patience for it, where the threads stay as they are. Those whose clients
// are still there are as many as are served within that patience, and the last of them is
// served when it is over: half of them.
func fewerSteps(s *symptoms.Symptoms) []model.Step {
	gone := reading.GivenUp(s.Now)
	most, known := reading.MaxThreads(s.Now)
	if gone == 0 || !known || reading.ConnectionLimit(s.Now) == reading.LimitUnknown {
		return nil
	}
	to := max((most+reading.WaitingRequests(s.Now)-gone)/2, most+1)
	in := s.Now.Connector.MaxConnections
	text := "If neither can be, let fewer wait: " + leftInLine(gone, reading.WaitingRequests(s.Now))
	if in.Value > 0 && to >= in.Value {
		return nil
	}
	return []model.Step{advice.MaxConnectionsSetting().Change(s, in, text, in.Value, to)}
}

// leftInLine says that gone of all requests that wait are of clients that have left.
func leftInLine(gone, all int) string {
	of := phrase.Sprintf("%d of the %d requests that wait", gone, all)
	switch {
	case all == 1:
		of = "the one request that waits"
	case gone == all:
		of = phrase.Sprintf("all %d requests that wait", all)
	}
	if gone == 1 {
		return "the client of " + of + " has given up, and it is served all the same"
	}
	return "the clients of " + of + " have given up, and these are served all the same"
}

// beforeCalls is what to find out of the file or the socket that n threads wait for.
func beforeCalls(s *symptoms.Symptoms, w *model.Workers, n int) model.Step {
	if w.Call() == model.UDPReceive && w.UDPPeer.Port() == words.DNSPort {
		return advice.Action(phrase.Sprintf("See why the name server %s does not answer, and which name it is asked (/etc/resolv.conf and the host names in the application's settings)", w.UDPPeer.Addr()))
	}
	what := "file it is, as of a mount or a pipe that does not answer"
	if w.Call().OnSocket() {
		what = "server it is that does not answer"
	}
	return advice.DumpStep(s, phrase.Sprintf("See which %s: %s %s", what, phrase.Count(n, "thread"), words.BlockedIn(w, n)))
}

// beforeThreads is what to look at before the number of threads is changed.
func beforeThreads(s *symptoms.Symptoms, v model.Verdict) []model.Step {
	if n := s.InCalls(); n > 0 {
		return []model.Step{beforeCalls(s, reading.DownstreamOf(s.Now).Workers, n)}
	}
	if n, sends := s.ForClients(); n > 0 {
		what := "requests, which then come at once"
		if sends {
			what = "responses, or send less"
		}
		return []model.Step{advice.Action(phrase.Sprintf("Let a proxy in front buffer the %s: %s %s", what, phrase.Count(n, "thread"), words.ForClients(n, sends)))}
	}
	switch {
	case s.Waits.Possible != model.CauseNone:
		return []model.Step{advice.Action(phrase.Sprintf("Look at %s: the threads may wait for it", words.PeerName(s.Waits.Peer)))}
	case s.Paused():
		return []model.Step{advice.Action("See why the JVM stands still so often (-Xlog:gc,safepoint)")}
	case s.CPUShortBeside(v.Cause):
		return []model.Step{advice.Action("Give the process more CPU: its threads wait for one")}
	case s.Inside() == 0:
		return nil
	}
	if down := words.Unconnected(s.Now); down != "" {
		return []model.Step{advice.Action(phrase.Sprintf("Find out whether %s can be reached: no connection to it is open", down))}
	}
	if where := stuckAt(s); where != "" {
		return []model.Step{advice.Action(phrase.Sprintf("Look at %s, where most of the threads wait: at what it waits for, and who has that", where))}
	}
	n := s.Inside()
	return []model.Step{advice.DumpStep(s, phrase.Sprintf("See what the %s %s for", phrase.Count(n, "thread"), phrase.Verb(n, "waits", "wait")))}
}

// stuckAt is the method at which most of the busy threads are, "" where the JVM was not
// asked.
func stuckAt(s *symptoms.Symptoms) string {
	g := reading.StacksOf(s.Now).BusyGroup()
	switch {
	case g == nil:
		return ""
	case g.Application != "":
		return model.ShortMethod(g.Application)
	}
	return model.ShortMethod(g.Library)
}

// acceptCountNot is the change that everybody tries first.
func acceptCountNot(s *symptoms.Symptoms) string {
	switch {
	case reading.Queued(s.Now) > 0:
		return "acceptCount: clients only wait longer, nobody is served faster."
	case reading.WaitingRequests(s.Now) > 0:
		return "acceptCount: the accept queue is empty, requests wait inside " + reading.ServerName(s.Now) + "."
	}
	return "acceptCount: nothing waits in the accept queue."
}

// AdviseThreads is to have as many threads as requests are there, if that is within
// reach; else twice as many, which halves the wait.
func AdviseThreads(s *symptoms.Symptoms, v model.Verdict) string {
	if s.Waits.Cause != model.CauseNone {
		return phrase.Sprintf("Leave %s at %d: see %s.", advice.MaxThreadsSetting().Name(s.Now), s.Now.Connector.MaxThreads.Value, s.Waits.Cause)
	}
	most, _ := reading.MaxThreads(s.Now)
	busy, seen := reading.BusyThreads(s.Now)
	to, effect := threadsAdvised(s)
	shorten := "Shorten what the handlers wait for"
	if n := s.Now.SendingThreads(); seen && 2*n > min(busy, most) {
		shorten = fmt.Sprintf("Send less, or let a buffering proxy take the responses: %d of the %d busy threads have one that its client has not taken yet. Shorten that", n, min(busy, most))
	}
	first := ""
	if s.NoMoreThreads() && s.Now.Connector.MaxThreads.Kind == model.SourceInferred {
		return phrase.Sentences("See pids_limit: no more threads than these can be started, whatever is configured.", advice.AcceptCountInVain(s))
	}
	if s.MoreWouldWait(v.Cause) {
		return AdviseCPU
	}
	if reading.Gate(s.Now) != nil {
		return phrase.Sentences("See semaphore_valve: "+GateWords(s)+".", advice.AcceptCountInVain(s))
	}
	if p := s.Waits.Possible; p != model.CauseNone {
		first = fmt.Sprintf("See possible_%s first: more threads may only wait, too.", p)
	}
	if first == "" && s.Paused() {
		first = "See jvm_pause first: nothing runs in a pause, whatever the number of threads."
	}
	if first == "" && s.CPUShortBeside(v.Cause) {
		first = "See cpu_saturated first: more threads may only wait for a CPU, too."
	}
	if first == "" && s.InCalls() > 0 {
		code := "waiting_for_file"
		if reading.DownstreamOf(s.Now).Workers.Call().OnSocket() {
			code = "waiting_for_socket"
		}
		first = "See " + code + " first: more threads would wait there, too."
	}
	if first == "" && s.Inside() > 0 {
		first = "See waiting_inside first: more threads may only wait, too."
	}
	if first != "" && s.ThreadsMayBeVain() {
		return phrase.Sentences(first, shorten+".", pastPatience(s), advice.AcceptCountInVain(s))
	}
	text := phrase.Sentences(first,
		shorten+", or raise "+advice.MaxThreadsSetting().FromTo(s.Now, most, to)+": "+effect+".",
		pastPatience(s),
		"Each thread takes up to 1 MiB of stack, and what the handlers call must handle the additional load.")
	if v.Cause != model.CauseMaxThreads {
		return text // the cause's own advice has the rest
	}
	return phrase.Sentences(text, advice.AcceptCountInVain(s))
}

// pastPatience says that what waits is longer than its clients' patience.
func pastPatience(s *symptoms.Symptoms) string {
	n := reading.GivenUp(s.Now)
	if n == 0 {
		return ""
	}
	return phrase.Sprintf("The clients of %d of the %d requests that wait have given up, and these are served all the same, before those that come now: let no more of them wait (%s) than are served within the clients' timeout.",
		n, reading.WaitingRequests(s.Now), advice.MaxConnectionsSetting().Name(s.Now))
}

// threadsAdvised is a maxThreads above the one in force, and what it is enough for.
func threadsAdvised(s *symptoms.Symptoms) (to int, effect string) {
	most, _ := reading.MaxThreads(s.Now)
	to, effect = threadsNow(s)
	if steady := advice.Steady(s, reading.StageMaxThreads, most, to); steady > to {
		return steady, "enough for what has waited at most since the trouble began"
	}
	return to, effect
}

// threadsNow is the same for those that wait now.
func threadsNow(s *symptoms.Symptoms) (to int, effect string) {
	most, _ := reading.MaxThreads(s.Now)
	busy, seen := reading.BusyThreads(s.Now)
	waiting := reading.WaitingForThread(s.Now)
	to, effect = advice.RoundUp(most+waiting), "then every request now inside has a thread"
	switch {
	case reading.Hidden(s.Now):
		return max(to, advice.Spare(most)), "a first step, since not all waiting requests can be seen"
	case waiting == 0 || seen && busy+waiting <= most:
		return advice.Spare(most), "a quarter more than there are"
	case most+waiting > 5*most:
		return 2 * most, fmt.Sprintf("that halves the wait; a thread for every request now inside would take %d", to)
	}
	return to, effect
}

// maxConnectionsFull: all connections are taken, or were when packets were dropped.
func maxConnectionsFull(s *symptoms.Symptoms, lost model.Cause) bool {
	return s.ConnectionsFull || lost == model.CauseMaxConnections || lost == model.CauseKeepAliveIdle
}

// GateWords say what it does.
func GateWords(s *symptoms.Symptoms) string {
	g := reading.Gate(s.Now)
	return phrase.Sprintf("a SemaphoreValve lets %d requests through at a time%s, and the others wait in it with a thread each", g.Value, words.SourceOf(g))
}

// gateSteps are what to do about it.
func gateSteps(s *symptoms.Symptoms) []model.Step {
	g := reading.Gate(s.Now)
	most, _ := reading.MaxThreads(s.Now)
	return []model.Step{{
		Text:    "Shorten what the handlers wait for; or raise the valve's concurrency, if what they call has room for more at the same time",
		Setting: "SemaphoreValve concurrency", From: phrase.Sprintf("%v", g.Value), To: phrase.Sprintf("%v", most),
	}}
}
