package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// notReading: requests stay unread though threads are idle, whatever keeps them apart.
func notReading() cause {
	return cause{
		name: model.CauseNotReading,
		now: rule[*judge]{
			holds: func(j *judge) certainty {
				return max(when(j.Both(reading.WithoutPoller) && j.Both(reading.UnreadAny), surely), when(j.requestsStand() && j.threadsFree(), possibly))
			},
			refuted: []refutation[*judge]{
				{"the process's threads wait for a CPU", func(j *judge) bool {
					return !j.Both(reading.WithoutPoller) && j.Share(reading.RunDelay) >= 2*j.T.RunDelay
				}},
				{"as many connections are answered and open as there are threads, each of which may read the rest of a request there", func(j *judge) bool {
					return !j.Both(reading.WithoutPoller) && j.eachMaySwallow()
				}},
				{"whether requests wait cannot be seen (TLS, HTTP/2)", func(j *judge) bool { return reading.Hidden(j.Now) }},
				{"the connector does not speak HTTP", func(j *judge) bool { return !reading.SpeaksHTTP(j.Now) }},
			},
		},
		near: func(j *judge) bool { return j.Both(reading.WithoutPoller) },
		because: func(j *judge, _ model.Verdict) string {
			if j.Both(reading.WithoutPoller) {
				return " because " + noPoller
			}
			return " although " + j.idlePhrase()
		},
		evidence: func(j *judge, _ model.Verdict) string {
			missing := ""
			if j.Both(reading.WithoutPoller) {
				missing = noPoller
			}
			return j.join(missing, j.unreadPhrase(), j.idlePhrase(), j.connectionNumbers(), j.queueNumbers())
		},
		advice: func(*judge, model.Verdict) string {
			return "Look for OutOfMemoryError in the log (\"unable to create native thread\": the user's limit of processes, or pids.max): the poller thread may have ended of it, and only a restart brings it back. Else ask the JVM what its threads do (--thread-dump as its user and group, or jstack PID): a poller that is stuck, or fewer threads than it seems. More threads or connections would not be used either."
		},
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			return []model.Step{
				j.dumpStep("See whether the poller thread is there, and what it does"),
				action("Look into the log for OutOfMemoryError: raise the limit that it names (ulimit -u, TasksMax=, pids.max)"),
				action("Restart: a thread that has ended does not come back"),
			}, "More threads or connections: those that are there have nothing to do."
		},
		book: Runbook{
			Title:     "requests stay unread while threads are idle",
			Seen:      "In two readings requests have been there for a second and longer of which nobody has read a byte, and threads of the pool have nothing to do: the poller thread has ended, or is stuck.",
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

func (j *judge) unreadPhrase() string {
	if j.Now.Connections == nil || j.Now.Connections.Unread == 0 {
		return ""
	}
	return j.waitingPhrase() + ", the first for " + phrase.Seconds(j.Now.Connections.Unread) + " and longer"
}

func (j *judge) idlePhrase() string {
	busy, _ := reading.BusyThreads(j.Now)
	n := 0
	if j.Now.Connector.PoolThreads != nil {
		n = *j.Now.Connector.PoolThreads
	}
	return phrase.Sprintf("%d of the pool's %s have no request", max(0, n-busy), phrase.Count(n, "thread"))
}

// eachMaySwallow: who has answered before the end of a request reads its rest, however long that
// takes (Http11InputBuffer.endRequest), and the connection looks idle.
func (j *judge) eachMaySwallow() bool {
	pool := j.Now.Connector
	return pool != nil && pool.PoolThreads != nil && reading.Phase(j.Now, model.Idle)-reading.Silent(j.Now) >= *pool.PoolThreads
}
