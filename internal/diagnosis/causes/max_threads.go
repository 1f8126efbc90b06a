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
		Name:   model.CauseMaxThreads,
		around: rule[reading.Pair]{holds: func(p reading.Pair) Certainty { return When(p.AwaitsWorkers(), Surely) }},
		dropped: []refutation[*symptoms.Symptoms]{{"of a dropped packet: an acceptor takes connections there, not a worker (NIO2)", func(s *symptoms.Symptoms) bool {
			_, known := reading.MaxThreads(s.Now)
			return !known || !reading.AcceptsWithWorkers(s.Now)
		}}},
		Now: rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty { return When(s.ThreadsFull, Surely) }},
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
			Clients:   "Slow responses, then read timeouts. No client is refused, but with NIO2, whose workers accept: where the accept queue is full, connect timeouts.",
			Check:     "What the handlers wait for (a database, another service, a lock): `jstack PID` shows where the `http-nio-…-exec-…` threads wait.",
			Change:    "Shorten that wait. Raise `server.tomcat.threads.max` only if what the handlers call has room for more at the same time.",
			Vain:      "acceptCount. It makes clients wait longer in front of the same threads.",
			Holds:     "requests wait in two readings, and the pool is at its maximum with nine tenths of it busy, or, behind their answers, with hardly one that waits as idle ones do (with a timeout), while a request is unread for a second; of a dropped packet, where a worker accepts (NIO2): all of them were busy while clients waited in two readings around the drop, with hardly more connections held in the second",
			Otherwise: "requests_stand, where requests wait in front of free threads",
		},
	}
}

func maxThreadsSteps(s *symptoms.Symptoms, v model.Verdict) (do []model.Step, not string) {
	return threadSteps(s, v), advice.AcceptCountNot(s)
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
	first := advice.BeforeThreads(s, v)
	if len(first) > 0 && s.ThreadsMayBeVain() {
		return append(first, advice.Action("Make that faster, or let it fail sooner"))
	}
	most, _ := reading.MaxThreads(s.Now)
	to, _ := advice.ThreadsAdvised(s)
	text := "Shorten what the handlers wait for; if that cannot be, raise the number of threads"
	switch {
	case s.Paused() || s.CPUShortBeside(v.Cause):
		text = "If that is not enough, raise the number of threads"
	case len(first) > 0:
		text = "Make that faster; if it cannot be, raise the number of threads"
	}
	first = append(first, advice.MaxThreadsSetting().Change(s, s.Now.Connector.MaxThreads, text, most, to))
	return append(first, advice.FewerSteps(s)...)
}

// AdviseThreads is to have as many threads as requests are there, if that is within
// reach; else twice as many, which halves the wait.
func AdviseThreads(s *symptoms.Symptoms, v model.Verdict) string {
	if s.Waits.Cause != model.CauseNone {
		return phrase.Sprintf("Leave %s at %d: see %s.", advice.MaxThreadsSetting().Name(s.Now), s.Now.Connector.MaxThreads.Value, s.Waits.Cause)
	}
	most, _ := reading.MaxThreads(s.Now)
	busy, seen := reading.BusyThreads(s.Now)
	to, effect := advice.ThreadsAdvised(s)
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
		return phrase.Sentences("See semaphore_valve: "+words.GateWords(s)+".", advice.AcceptCountInVain(s))
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
		return phrase.Sentences(first, shorten+".", advice.PastPatience(s), advice.AcceptCountInVain(s))
	}
	text := phrase.Sentences(first,
		shorten+", or raise "+advice.MaxThreadsSetting().FromTo(s.Now, most, to)+": "+effect+".",
		advice.PastPatience(s),
		"Each thread takes up to 1 MiB of stack, and what the handlers call must handle the additional load.")
	if v.Cause != model.CauseMaxThreads {
		return text // the cause's own advice has the rest
	}
	return phrase.Sentences(text, advice.AcceptCountInVain(s))
}

// maxConnectionsFull: all connections are taken, or were when packets were dropped.
func maxConnectionsFull(s *symptoms.Symptoms, lost model.Cause) bool {
	return s.ConnectionsFull || lost == model.CauseMaxConnections || lost == model.CauseKeepAliveIdle
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
