package diagnosis

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// executorQueue: the bounded queue in front of the threads is full.
func executorQueue() cause {
	full := func(j *judge) bool { return j.executorFull }
	return cause{
		name: model.CauseExecutorQueue,
		now:  rule[*judge]{holds: func(j *judge) certainty { return when(full(j), surely) }},
		near: full, full: full, depth: 40,
		because: (*judge).becauseUnknown,
		evidence: func(j *judge, _ model.Verdict) string {
			n, _ := reading.BoundedQueue(j.Now)
			return j.join(j.threadNumbers(), phrase.Sprintf("executor queue bounded at %d", n))
		},
		advice: func(j *judge, _ model.Verdict) string { return j.adviseExecutorQueue() },
		steps:  (*judge).executorSteps,
		book: Runbook{
			Title:     "the queue in front of the threads is full",
			Seen:      "A bounded queue in front of the threads (`server.tomcat.threads.max-queue-capacity`, `maxQueueSize` of an Executor) and a pool at its maximum.",
			Clients:   "Resets or errors at once.",
			Change:    "The queue's size, if rejecting is not what it is for; or the threads behind it.",
			Vain:      "acceptCount or maxConnections.",
			Holds:     "as many requests wait as the executor may queue, and every thread is busy",
			Otherwise: "max_threads",
		},
	}
}

func (j *judge) executorSteps(v model.Verdict) (do []model.Step, not string) {
	n, _ := reading.BoundedQueue(j.Now)
	do = j.threadSteps(v)
	do = append(do, maxQueueSetting().change(j, j.Now.Connector.MaxQueue, "If rejecting is not what it is for, make the executor's queue longer: requests then wait longer", n, max(spare(2*n), 10)))
	return do, "acceptCount or maxConnections: they have no part in it."
}

func (j *judge) adviseExecutorQueue() string {
	n, _ := reading.BoundedQueue(j.Now)
	return phrase.Sentences(
		fmt.Sprintf("%s is %d: raise it to %d if rejecting is not what it is for, or raise the threads that empty it.", maxQueueSetting().name(j.Now), n, max(spare(2*n), 10)),
		"A longer queue means that requests wait longer before they are served. acceptCount and maxConnections have no part in it.")
}
