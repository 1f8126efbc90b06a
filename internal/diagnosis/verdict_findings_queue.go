package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// standingQueue says that clients wait in a queue that is not full, in front of a
// server that seems to have room: what is configured is then not what is in force,
// or nobody accepts.
func (fd finder) standingQueue(v model.Verdict, add adder) {
	unexplained := v.Cause == model.CauseNone && (v.Status == model.StatusOK || v.Status == model.StatusWarning)
	if !unexplained && !fd.besideThreads(v) || !fd.queueBeforeRoom() {
		return
	}
	n, _ := held(fd.Now)
	add("queue_stands", model.SeverityWarning,
		phrase.Capital(phrase.Sprintf("%s, although only %d of %d connections%s are taken.", fd.queuePhrase(), n,
			fd.Now.Connector.MaxConnections.Value, sourceOf(fd.Now.Connector.MaxConnections))),
		"Either the limit in force is lower (set by code, or over JMX while it runs: compare connectionCount and maxConnections of its ThreadPool MBean), or the connector is paused, or its acceptor thread is stuck (jstack) or gets no CPU.")
}

// besideThreads: busy threads are what is named, which keep nobody from accepting, but
// for a connector whose workers accept.
func (fd finder) besideThreads(v model.Verdict) bool {
	if v.Status != model.StatusSaturated || acceptsWithWorkers(fd.Now) {
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
func (fd finder) limitBesideThreads(v model.Verdict, add adder) {
	if !fd.besideThreads(v) || connectionLimit(fd.Now) != limitUnknown || !fd.both(fd.queueStands) {
		return
	}
	add("limits_unknown", model.SeverityWarning,
		phrase.Capital(fd.queuePhrase())+": whether maxConnections is reached as well is unknown, as that limit is not known.", fd.adviseUnknown())
}

// standingRequests says that requests wait in front of threads that seem free.
func (fd finder) standingRequests(v model.Verdict, add adder) {
	if v.Cause != model.CauseNone || !fd.requestsStand() {
		return
	}
	free := ""
	if n := fd.Now.Connector.PoolThreads; n != nil && !fd.allHaveOne() {
		free = phrase.Sprintf(", although not all of the pool's %s seem to have one", phrase.Count(*n, "thread"))
	}
	add("requests_stand", model.SeverityWarning,
		phrase.Capital(fd.waitingPhrase())+", the first for "+phrase.Seconds(fd.Now.Connections.Unread)+" and longer"+free+".",
		"Ask the JVM what its threads do (--thread-dump as its user and group, or jstack PID). Either fewer threads serve this port than it seems (a limit or an executor set by code, a thread that could not be started), or they get no CPU, or the poller thread is stuck.")
}
