package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

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
	case j.noMoreThreads() && j.Now.Connector.MaxThreads.Kind == model.SourceInferred:
		return []model.Step{action("Raise the limit of threads and processes (pids.max: --pids-limit, podPidsLimit, TasksMax=), then restart: no more threads than these can be started")}
	}
	first := j.beforeThreads(v)
	if len(first) > 0 && j.threadsMayBeVain() {
		return append(first, action("Make that faster, or let it fail sooner"))
	}
	most, _ := maxThreads(j.Now)
	to, _ := j.threadsAdvised()
	text := "Shorten what the handlers wait for; if that cannot be, raise the number of threads"
	if len(first) > 0 {
		text = "Make that faster; if it cannot be, raise the number of threads"
	}
	return append(first, maxThreadsSetting().change(j, j.Now.Connector.MaxThreads, text, most, to))
}

// beforeThreads is what to look at before the number of threads is changed.
func (j *judge) beforeThreads(v model.Verdict) []model.Step {
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
	g := stacksOf(j.Now).BusyGroup()
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
	case queued(j.Now) > 0:
		return "acceptCount: clients only wait longer, nobody is served faster."
	case waitingRequests(j.Now) > 0:
		return "acceptCount: the accept queue is empty, requests wait inside " + serverName(j.Now) + "."
	}
	return "acceptCount: nothing waits in the accept queue."
}
