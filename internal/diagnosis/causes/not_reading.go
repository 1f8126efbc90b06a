package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// notReading: the thread that hands requests over has ended, and with it whoever waits for the rest of a body; or it
// is seen to do something else while threads are idle. That requests are unread is a fact alone, see lastingRequests.
func notReading() Cause {
	return Cause{
		Name: model.CauseNotReading,
		Now: rule[*symptoms.Symptoms]{
			holds: func(s *symptoms.Symptoms) Certainty {
				return max(When(s.Both(reading.WithoutPoller) && s.Both(reading.UnreadAny), Surely), When(pollerAway(s), Possibly))
			},
			refuted: []refutation[*symptoms.Symptoms]{
				{"whether requests wait cannot be seen (TLS, HTTP/2)", func(s *symptoms.Symptoms) bool { return reading.Hidden(s.Now) }},
				{"the connector does not speak HTTP", func(s *symptoms.Symptoms) bool { return !reading.SpeaksHTTP(s.Now) }},
			},
		},
		Near: func(s *symptoms.Symptoms) bool { return s.Both(reading.WithoutPoller) },
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.Both(reading.WithoutPoller) {
				return " because " + noPoller
			}
			return " because " + pollerElsewhere + ", although " + idleThreads(s)
		},
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			missing, idle := pollerElsewhere, idleThreads(s)
			if s.Both(reading.WithoutPoller) {
				missing = noPoller
				if !s.ThreadsFree() {
					idle = ""
				}
			}
			return words.Join(missing, words.UnreadPhrase(s), idle, words.ConnectionNumbers(s), words.QueueNumbers(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if !s.Both(reading.WithoutPoller) {
				return callerRuns + ". --thread-dump as its user and group, or jstack PID, shows what the poller does. More threads or connections would not be used either."
			}
			return "Look for OutOfMemoryError in the log (\"unable to create native thread\": the user's limit of processes, or pids.max): the poller thread may have ended of it, and only a restart brings it back. More threads or connections would not be used either."
		},
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			const not = "More threads or connections: none is handed a request."
			if !s.Both(reading.WithoutPoller) {
				return []model.Step{advice.DumpStep(s, "See what the poller thread waits for"), advice.Action(callerRuns)}, not
			}
			return []model.Step{
				advice.DumpStep(s, "See whether the poller thread is there, and what it does"),
				advice.Action("Look into the log for OutOfMemoryError: raise the limit that it names (ulimit -u, TasksMax=, pids.max)"),
				advice.Action("Restart: a thread that has ended does not come back"),
			}, not
		},
		Book: Runbook{
			Title:     "requests stay unread while threads are idle",
			Seen:      "In two readings requests are there of which nobody has read a byte, and the poller thread, which hands them to the others, has ended; or for a second and longer, and it waits with a timeout or for a peer, while threads of the pool have nothing to do. Where it has ended, whatever fills up behind it (threads that wait for the rest of a body, connections) is no cause.",
			Clients:   "Connected, and no answer: read timeouts. What they leave behind stays (CLOSE_WAIT).",
			Check:     "`jstack PID` for the `-Poller` thread; the log for OutOfMemoryError (\"unable to create native thread\": `ulimit -u` of the user, `pids.max` of the cgroup). Where it is there: what it waits for.",
			Change:    "Raise that limit, and restart: a thread that has ended does not come back. An executor that does not run what it cannot take in the thread that brings it (CallerRunsPolicy).",
			Vain:      "More threads or connections.",
			Holds:     "no thread has the poller's name, and requests are unread; or requests are unread for a second in two readings, fewer threads are busy than the pool has, and the poller waits for a timer or a peer, as at no safepoint",
			Otherwise: "requests_stand: for how long, and how many threads seem to have none",
		},
	}
}

// noPoller is the fact.
const noPoller = "the poller thread, which hands requests to the others, is not there (it has ended)"

const pollerElsewhere = "the poller thread waits for a timer or a peer"

const callerRuns = "Look at the executor: one that runs what it cannot take in the thread that brings it (CallerRunsPolicy) has the poller serve requests. Let it queue or reject them instead"

// pollerAway: it is seen to wait by itself, in front of idle threads.
func pollerAway(s *symptoms.Symptoms) bool {
	return s.RequestsStand() && s.ThreadsFree() && s.Both(reading.PollerAway)
}

func idleThreads(s *symptoms.Symptoms) string {
	busy, _ := reading.BusyThreads(s.Now)
	n := 0
	if s.Now.Connector.PoolThreads != nil {
		n = *s.Now.Connector.PoolThreads
	}
	return phrase.Sprintf("%d of the pool's %s have no request", max(0, n-busy), phrase.Count(n, "thread"))
}
