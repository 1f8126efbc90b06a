package diagnosis

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxThreadsBusy: every thread has a request, and requests wait.
func maxThreadsBusy() cause {
	return cause{
		name: model.CauseMaxThreads,
		now:  rule[*judge]{holds: func(j *judge) certainty { return when(j.threadsFull, surely) }},
		near: func(j *judge) bool { // what waits on hidden connections is not seen
			return j.stageHigh(reading.StageMaxThreads) && (j.Both(j.threadsWanted) || j.Both(reading.Hidden) && j.Both(reading.AllThreadsBusy))
		},
		full: func(j *judge) bool {
			return j.threadsFull || maxConnectionsFull(j) && j.lasting(reading.AllThreadsBusy)
		},
		depth:   50,
		because: func(j *judge, _ model.Verdict) string { return " because " + j.threadsPhrase() },
		evidence: func(j *judge, _ model.Verdict) string {
			if j.waits.cause != model.CauseNone { // its own finding has the stacks
				return j.join(j.threadNumbers(), j.queueNumbers())
			}
			return j.join(j.threadNumbers(), stackNumbers(j.Now), j.queueNumbers())
		},
		advice: (*judge).adviseThreads,
		steps:  (*judge).maxThreadsSteps,
		book: Runbook{
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

func (j *judge) maxThreadsSteps(v model.Verdict) (do []model.Step, not string) {
	return j.threadSteps(v), j.acceptCountNot()
}

// threadSteps are what to do about used up threads: find out what they wait for, then
// shorten it or raise them; only the former where more would wait as well.
func (j *judge) threadSteps(v model.Verdict) []model.Step {
	switch {
	case j.waits.cause == model.CauseDownstream:
		return j.downstreamSteps()
	case j.waits.cause == model.CauseConnectionPool:
		return j.poolSteps()
	case reading.Gate(j.Now) != nil:
		return j.gateSteps()
	case j.noMoreThreads() && j.Now.Connector.MaxThreads.Kind == model.SourceInferred:
		return []model.Step{action("Raise the limit of threads and processes (pids.max: --pids-limit, podPidsLimit, TasksMax=), then restart: no more threads than these can be started")}
	}
	first := j.beforeThreads(v)
	if len(first) > 0 && j.threadsMayBeVain() {
		return append(first, action("Make that faster, or let it fail sooner"))
	}
	most, _ := reading.MaxThreads(j.Now)
	to, _ := j.threadsAdvised()
	text := "Shorten what the handlers wait for; if that cannot be, raise the number of threads"
	if len(first) > 0 {
		text = "Make that faster; if it cannot be, raise the number of threads"
	}
	first = append(first, maxThreadsSetting().change(j, j.Now.Connector.MaxThreads, text, most, to))
	return append(first, j.fewerSteps()...)
}

// fewerSteps let fewer clients wait inside than have the patience for it. Those whose clients
// are still there are as many as are served within that patience, and the last of them is
// served when it is over: half of them.
func (j *judge) fewerSteps() []model.Step {
	gone := reading.GivenUp(j.Now)
	most, known := reading.MaxThreads(j.Now)
	if gone == 0 || !known || reading.ConnectionLimit(j.Now) == reading.LimitUnknown {
		return nil
	}
	to := max((most+reading.WaitingRequests(j.Now)-gone)/2, most+1)
	in := j.Now.Connector.MaxConnections
	text := phrase.Sprintf("Let fewer wait: the clients of %d of the %d that do have given up, and are served all the same", gone, reading.WaitingRequests(j.Now))
	if in.Value > 0 && to >= in.Value {
		return nil
	}
	return []model.Step{maxConnectionsSetting().change(j, in, text, in.Value, to)}
}

// beforeThreads is what to look at before the number of threads is changed.
func (j *judge) beforeThreads(v model.Verdict) []model.Step {
	if n, call := j.inFiles(); n > 0 {
		return []model.Step{j.dumpStep(phrase.Sprintf("See which file it is: %s %s in %s on one, as of a mount or a pipe that does not answer", phrase.Count(n, "thread"), phrase.Verb(n, "is", "are"), call))}
	}
	switch {
	case j.waits.possible != model.CauseNone:
		return []model.Step{action(phrase.Sprintf("Look at %s: the threads may wait for it", peerName(j.waits.peer)))}
	case j.cpuShortBeside(v.Cause):
		return []model.Step{action("Give the process more CPU: its threads wait for one")}
	case j.inside() == 0:
		return nil
	}
	if down := unconnected(j.Now); down != "" {
		return []model.Step{action(phrase.Sprintf("Find out whether %s can be reached: no connection to it is open", down))}
	}
	if where := j.stuckAt(); where != "" {
		return []model.Step{action(phrase.Sprintf("Look at %s, where most of the threads wait: at what it waits for, and who has that", where))}
	}
	n := j.inside()
	return []model.Step{j.dumpStep(phrase.Sprintf("See what the %s %s for", phrase.Count(n, "thread"), phrase.Verb(n, "waits", "wait")))}
}

// stuckAt is the method at which most of the busy threads are, "" where the JVM was not
// asked.
func (j *judge) stuckAt() string {
	g := reading.StacksOf(j.Now).BusyGroup()
	switch {
	case g == nil:
		return ""
	case g.Application != "":
		return model.ShortMethod(g.Application)
	}
	return model.ShortMethod(g.Library)
}

// acceptCountNot is the change that everybody tries first.
func (j *judge) acceptCountNot() string {
	switch {
	case reading.Queued(j.Now) > 0:
		return "acceptCount: clients only wait longer, nobody is served faster."
	case reading.WaitingRequests(j.Now) > 0:
		return "acceptCount: the accept queue is empty, requests wait inside " + reading.ServerName(j.Now) + "."
	}
	return "acceptCount: nothing waits in the accept queue."
}

// adviseThreads: as many threads as requests are there, if that is within
// reach; else twice as many, which halves the wait.
func (j *judge) adviseThreads(v model.Verdict) string {
	if j.waits.cause != model.CauseNone {
		return phrase.Sprintf("Leave %s at %d: see %s.", maxThreadsSetting().name(j.Now), j.Now.Connector.MaxThreads.Value, j.waits.cause)
	}
	most, _ := reading.MaxThreads(j.Now)
	busy, seen := reading.BusyThreads(j.Now)
	to, effect := j.threadsAdvised()
	shorten := "Shorten what the handlers wait for"
	if n := sendingThreads(j.Now, min(busy, most)); seen && 2*n > min(busy, most) {
		shorten = fmt.Sprintf("Send less, or let a buffering proxy take the responses: %d of the %d busy threads have one that its client has not taken yet. Shorten that", n, min(busy, most))
	}
	first := ""
	if j.noMoreThreads() && j.Now.Connector.MaxThreads.Kind == model.SourceInferred {
		return phrase.Sentences("See pids_limit: no more threads than these can be started, whatever is configured.", j.acceptCountInVain())
	}
	if reading.Gate(j.Now) != nil {
		return phrase.Sentences("See semaphore_valve: "+j.gateWords()+".", j.acceptCountInVain())
	}
	if p := j.waits.possible; p != model.CauseNone {
		first = fmt.Sprintf("See possible_%s first: more threads may only wait, too.", p)
	}
	if first == "" && j.cpuShortBeside(v.Cause) {
		first = "See cpu_saturated first: more threads may only wait for a CPU, too."
	}
	if n, _ := j.inFiles(); first == "" && n > 0 {
		first = "See waiting_for_file first: more threads would wait there, too."
	}
	if first == "" && j.inside() > 0 {
		first = "See waiting_inside first: more threads may only wait, too."
	}
	if first != "" && j.threadsMayBeVain() {
		return phrase.Sentences(first, shorten+".", j.acceptCountInVain())
	}
	text := phrase.Sentences(first,
		shorten+", or raise "+maxThreadsSetting().fromTo(j.Now, most, to)+": "+effect+".",
		"Each thread takes up to 1 MiB of stack, and what the handlers call must handle the additional load.")
	if v.Cause != model.CauseMaxThreads {
		return text // the cause's own advice has the rest
	}
	return phrase.Sentences(text, j.acceptCountInVain())
}

// threadsAdvised is a maxThreads above the one in force, and what it is enough for.
func (j *judge) threadsAdvised() (to int, effect string) {
	most, _ := reading.MaxThreads(j.Now)
	to, effect = j.threadsNow()
	if steady := j.steady(reading.StageMaxThreads, most, to); steady > to {
		return steady, "enough for what has waited at most since the trouble began"
	}
	return to, effect
}

// threadsNow is the same for those that wait now.
func (j *judge) threadsNow() (to int, effect string) {
	most, _ := reading.MaxThreads(j.Now)
	busy, seen := reading.BusyThreads(j.Now)
	waiting := reading.WaitingForThread(j.Now)
	if gone := reading.GivenUp(j.Now); gone > 0 { // nobody needs a thread for these
		waiting -= min(waiting, gone)
	}
	to, effect = roundUp(most+waiting), "then every request now inside has a thread"
	switch {
	case reading.Hidden(j.Now):
		return max(to, spare(most)), "a first step, since not all waiting requests can be seen"
	case waiting == 0 || seen && busy+waiting <= most:
		return spare(most), "a quarter more than there are"
	case most+waiting > 5*most:
		return 2 * most, fmt.Sprintf("that halves the wait; a thread for every request now inside would take %d", to)
	}
	return to, effect
}

// sendingThreads is how many of the busy ones are at most accounted for by
// responses that wait for their clients. A connection may have such bytes and no
// thread any more, so those that are in service come first.
func sendingThreads(l *model.Listener, busy int) int {
	return min(reading.Phase(l, model.Sending), max(0, busy-reading.Phase(l, model.InService)))
}
