package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// standingQueue says that clients wait in a queue that is not full, in front of a
// server that seems to have room: what is configured is then not what is in force,
// or nobody accepts.
func (j *judge) standingQueue(v model.Verdict, add adder) {
	if v.Cause != model.CauseNone || v.Status != model.StatusOK && v.Status != model.StatusWarning || !j.queueBeforeRoom() {
		return
	}
	n, _ := held(j.Now)
	add("queue_stands", model.SeverityWarning,
		phrase.Capital(phrase.Sprintf("%s, although only %d of %d connections%s are taken.", j.queuePhrase(), n,
			j.Now.Connector.MaxConnections.Value, sourceOf(j.Now.Connector.MaxConnections))),
		"Either the limit in force is lower (set by code, or over JMX while it runs: compare connectionCount and maxConnections of its ThreadPool MBean), or the connector is paused, or its acceptor thread is stuck (jstack) or gets no CPU.")
}
