package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// notReading: requests stay unread though threads are idle, whatever keeps them apart; or the thread has ended
// that hands them over, and with it whoever waits for the rest of a body.
func notReading() Cause {
	return Cause{
		Name: model.CauseNotReading,
		Now: rule[*symptoms.Symptoms]{
			holds: func(s *symptoms.Symptoms) Certainty {
				return max(When(s.Both(reading.WithoutPoller) && s.Both(reading.UnreadAny), Surely), When(s.RequestsStand() && s.ThreadsFree(), Possibly))
			},
			refuted: []refutation[*symptoms.Symptoms]{
				{"its process was followed for less than 0.4 s of the time in which the requests have been unread: whether it ran then is not known", func(s *symptoms.Symptoms) bool {
					return !s.Both(reading.WithoutPoller) && s.HardlySeen()
				}},
				{"the JVM stood still, or its threads waited for a CPU, for a quarter of that time together, or the CPU limit withheld a quarter of what the process wanted", func(s *symptoms.Symptoms) bool {
					return !s.Both(reading.WithoutPoller) && (s.WasNotRunning() || s.ThrottledMuch())
				}},
				{"the poller waits for something as at a safepoint, and the JVM may have been at one all the time: none ended between the readings", func(s *symptoms.Symptoms) bool {
					return !s.Both(reading.WithoutPoller) && s.MayHaveStood()
				}},
				{"as many connections are answered and open as there are threads, each of which may read the rest of a request there", func(s *symptoms.Symptoms) bool {
					return !s.Both(reading.WithoutPoller) && eachMaySwallow(s)
				}},
				{"hardly any thread of the pool waits with a timeout, as an idle one does (ThreadPoolExecutor.getTask)", func(s *symptoms.Symptoms) bool { return s.Now.NoneIdle() }},
				{"whether requests wait cannot be seen (TLS, HTTP/2)", func(s *symptoms.Symptoms) bool { return reading.Hidden(s.Now) }},
				{"the connector does not speak HTTP", func(s *symptoms.Symptoms) bool { return !reading.SpeaksHTTP(s.Now) }},
			},
		},
		Near: func(s *symptoms.Symptoms) bool { return s.Both(reading.WithoutPoller) },
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.Both(reading.WithoutPoller) {
				return " because " + noPoller
			}
			return ", although " + idleThreads(s)
		},
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			missing, idle := "", idleThreads(s)
			if s.Both(reading.WithoutPoller) {
				missing = noPoller
				if !s.ThreadsFree() {
					idle = ""
				}
			}
			return words.Join(missing, words.UnreadPhrase(s), idle, words.ConnectionNumbers(s), words.QueueNumbers(s))
		},
		Advice: func(*symptoms.Symptoms, model.Verdict) string {
			return "Look for OutOfMemoryError in the log (\"unable to create native thread\": the user's limit of processes, or pids.max): the poller thread may have ended of it, and only a restart brings it back. Else ask the JVM what its threads do (--thread-dump as its user and group, or jstack PID): a poller that is stuck, or fewer threads than it seems. More threads or connections would not be used either."
		},
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			return []model.Step{
				advice.DumpStep(s, "See whether the poller thread is there, and what it does"),
				advice.Action("Look into the log for OutOfMemoryError: raise the limit that it names (ulimit -u, TasksMax=, pids.max)"),
				advice.Action("Restart: a thread that has ended does not come back"),
			}, "More threads or connections: none is handed a request."
		},
		Book: Runbook{
			Title:     "requests stay unread while threads are idle",
			Seen:      "In two readings requests have been there for a second and longer of which nobody has read a byte, and threads of the pool have nothing to do: the poller thread has ended, or is stuck. Where it has ended, whatever fills up behind it (threads that wait for the rest of a body, connections) is no cause.",
			Clients:   "Connected, and no answer: read timeouts. What they leave behind stays (CLOSE_WAIT).",
			Check:     "`jstack PID` for the `-Poller` thread; the log for OutOfMemoryError (\"unable to create native thread\": `ulimit -u` of the user, `pids.max` of the cgroup).",
			Change:    "Raise that limit, and restart: a thread that has ended does not come back.",
			Vain:      "More threads or connections.",
			Holds:     "no thread has the poller's name, and requests are unread; or requests unread for a second in two readings, and fewer busy threads than the pool has",
			Otherwise: "requests_stand, where how many threads are busy is not known",
		},
	}
}

// noPoller is the fact.
const noPoller = "the poller thread, which hands requests to the others, is not there (it has ended)"

func idleThreads(s *symptoms.Symptoms) string {
	busy, _ := reading.BusyThreads(s.Now)
	n := 0
	if s.Now.Connector.PoolThreads != nil {
		n = *s.Now.Connector.PoolThreads
	}
	return phrase.Sprintf("%d of the pool's %s have no request", max(0, n-busy), phrase.Count(n, "thread"))
}

// eachMaySwallow: who has answered before the end of a request reads its rest, however long that
// takes (Http11InputBuffer.endRequest), and the connection looks idle.
func eachMaySwallow(s *symptoms.Symptoms) bool {
	pool := s.Now.Connector
	return pool != nil && pool.PoolThreads != nil && reading.Phase(s.Now, model.Idle)-reading.Silent(s.Now) >= *pool.PoolThreads
}
