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

// executorQueue: the bounded queue in front of the threads is full.
func executorQueue() Cause {
	full := func(s *symptoms.Symptoms) bool { return s.ExecutorFull }
	return Cause{
		Name: model.CauseExecutorQueue,
		Now:  rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty { return When(full(s), Surely) }},
		Near: full, Full: func(s *symptoms.Symptoms, _ model.Cause) bool { return full(s) }, Depth: 40,
		Because: becauseUnknown,
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			n, _ := reading.BoundedQueue(s.Now)
			return words.Join(words.ThreadNumbers(s), phrase.Sprintf("executor queue bounded at %d", n))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return adviseExecutorQueue(s) },
		Steps:  executorSteps,
		Book: Runbook{
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

func executorSteps(s *symptoms.Symptoms, v model.Verdict) (do []model.Step, not string) {
	n, _ := reading.BoundedQueue(s.Now)
	do = threadSteps(s, v)
	do = append(do, advice.MaxQueueSetting().Change(s, s.Now.Connector.MaxQueue, "If rejecting is not what it is for, make the executor's queue longer: requests then wait longer", n, max(advice.Spare(2*n), 10)))
	return do, "acceptCount or maxConnections: they have no part in it."
}

func adviseExecutorQueue(s *symptoms.Symptoms) string {
	n, _ := reading.BoundedQueue(s.Now)
	return phrase.Sentences(
		fmt.Sprintf("%s is %d: raise it to %d if rejecting is not what it is for, or raise the threads that empty it.", advice.MaxQueueSetting().Name(s.Now), n, max(advice.Spare(2*n), 10)),
		"A longer queue means that requests wait longer before they are served. acceptCount and maxConnections have no part in it.")
}
