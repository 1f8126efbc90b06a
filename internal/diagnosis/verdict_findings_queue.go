package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// standingQueue says that clients wait in a queue that is not full, in front of a
// server that seems to have room: what is configured is then not what is in force,
// or nobody accepts.
func (j *judge) standingQueue(v model.Verdict, add adder) {
	unexplained := v.Cause == model.CauseNone && (v.Status == model.StatusOK || v.Status == model.StatusWarning)
	if !unexplained && !j.besideThreads(v) || !j.queueBeforeRoom() {
		return
	}
	n, _ := reading.Held(j.Now)
	add("queue_stands", model.SeverityWarning,
		phrase.Capital(phrase.Sprintf("%s, although only %d of %d connections%s are taken.", j.queuePhrase(), n,
			j.Now.Connector.MaxConnections.Value, sourceOf(j.Now.Connector.MaxConnections))),
		"Either the limit in force is lower (set by code, or over JMX while it runs: compare connectionCount and maxConnections of its ThreadPool MBean), or the connector is paused, or its acceptor thread is stuck (jstack) or gets no CPU.")
}

// besideThreads: busy threads are what is named, which keep nobody from accepting, but
// for a connector whose workers accept.
func (j *judge) besideThreads(v model.Verdict) bool {
	if v.Status != model.StatusSaturated || reading.AcceptsWithWorkers(j.Now) {
		return false
	}
	switch v.Cause {
	case model.CauseMaxThreads, model.CauseExecutorQueue, model.CauseDownstream, model.CauseConnectionPool:
		return true
	}
	return false
}

// limitBesideThreads says that clients wait in the accept queue while threads are all
// that is known to be used up: maxConnections may be reached as well.
func (j *judge) limitBesideThreads(v model.Verdict, add adder) {
	if !j.besideThreads(v) || reading.ConnectionLimit(j.Now) != reading.LimitUnknown || !j.Both(j.queueStands) {
		return
	}
	add("limits_unknown", model.SeverityWarning,
		phrase.Capital(j.queuePhrase())+": whether maxConnections is reached as well is unknown, as that limit is not known.", j.adviseUnknown())
}

// standingRequests says that requests wait in front of threads that seem free.
func (j *judge) standingRequests(v model.Verdict, add adder) {
	if v.Cause != model.CauseNone || !j.requestsStand() {
		return
	}
	free := ""
	if n := j.Now.Connector.PoolThreads; n != nil && !j.allHaveOne() {
		free = phrase.Sprintf(", although not all of the pool's %s seem to have one", phrase.Count(*n, "thread"))
	}
	add("requests_stand", model.SeverityWarning,
		phrase.Capital(j.waitingPhrase())+", the first for "+phrase.Seconds(j.Now.Connections.Unread)+" and longer"+free+".",
		"Ask the JVM what its threads do (--thread-dump as its user and group, or jstack PID). Either fewer threads serve this port than it seems (a limit or an executor set by code, a thread that could not be started), or they get no CPU, or the poller thread is stuck.")
}
