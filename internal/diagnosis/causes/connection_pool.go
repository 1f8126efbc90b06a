package causes

import (
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// connectionPool: the threads wait for one of the connections that a pool has to one peer.
func connectionPool() Cause {
	return Cause{
		Name: model.CauseConnectionPool,
		Now: rule[*symptoms.Symptoms]{
			holds: func(s *symptoms.Symptoms) Certainty { return When(s.Waits.Shown == model.CauseConnectionPool, Surely) },
			refuted: []refutation[*symptoms.Symptoms]{
				speaks(symptoms.AtMonitors, "most threads wait at one place to enter a monitor, by a thread dump"),
				speaks(symptoms.OthersUsedUp, "half as many threads wait for a peer with another port, all of whose connections are in use as well"),
				speaks(symptoms.OneConnection, "no pool is configured, and there is one connection: a lock that is held over a call looks the same"),
				speaks(symptoms.PoolHasRoom, "the configured pool may have more connections than it has"),
				speaks(symptoms.OthersIdle, "no pool is configured, and another peer's configured pool has all its connections open and hardly a request in flight: handlers may keep these over the call, unless that pool's waiters have a timeout and those here have none"),
				speaks(symptoms.OneMoment, "the configured pool was used up at one moment only, or a connection of it was idle in all readings of a minute"),
				speaks(symptoms.Untimed, "most threads without a connection wait without a timeout, no worker is at the peer, and the configured pool's waiters always have one (HikariCP, tomcat-jdbc)"),
			},
		},
		Full:    func(s *symptoms.Symptoms, _ model.Cause) bool { return s.Waits.Cause == model.CauseConnectionPool },
		Depth:   60,
		Because: becauseUnknown,
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return words.Join(words.WaitNumbers(s), words.PeerNumbers(s), words.StackNumbers(s.Now))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return advisePool(s) },
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			return poolSteps(s), "More threads: they would wait for one of the same connections."
		},
		Book: Runbook{
			Title:     "a pool's connections to one backend are all in use",
			Seen:      "All threads are busy, every connection to one backend is in flight, and other busy threads have none (or, with `tcpdiag plan --backend-connections`, the connections carry fewer requests per second than the threads).",
			Change:    "A larger pool, if the backend can handle it, or faster answers of the backend.",
			Vain:      "More threads. 40 threads that share 10 connections to a backend of 2 s serve 5 requests per second, and 150 threads serve 5 as well.",
			Holds:     "the threads are used up, every connection to one peer is in flight in two readings, or in one for a second on average (of a configured pool also hardly one in another reading of the minute), and busy threads are without one",
			Otherwise: "possible_connection_pool beside max_threads, or waiting_inside",
		},
	}
}

// speaks is one of the reasons against it.
func speaks(against symptoms.Against, name string) refutation[*symptoms.Symptoms] {
	return refutation[*symptoms.Symptoms]{name, func(s *symptoms.Symptoms) bool { return s.Waits.Against == against }}
}

func poolSteps(s *symptoms.Symptoms) []model.Step {
	w := &s.Waits
	peer := words.WaitPeer(s)
	step := model.Step{
		Text:    phrase.Sprintf("Raise the pool if %s more at a time as fast", words.Answers(s)),
		Setting: "the pool of connections to " + peer, From: strconv.Itoa(w.Peer.Connections),
	}
	if p := w.Peer.Pool; p != nil {
		step.Setting, step.From, step.File = p.Setting, strconv.Itoa(p.Size.Value), advice.FoundIn(&p.Size)
	}
	if !w.Virtual {
		step.To, step.Limit = strconv.Itoa(w.There+w.Without()), reading.LimitConnectionPool
	}
	return []model.Step{advice.Action(phrase.Sprintf("Shorten what is asked of %s: each connection is in use until its answer has come", peer)), step}
}

// advisePool: as many connections as threads use it. Whether the peer can handle that
// is not known.
func advisePool(s *symptoms.Symptoms) string {
	w := &s.Waits
	to := w.There + w.Without()
	name, from := "the pool of connections to "+words.WaitPeer(s), w.Peer.Connections
	if p := w.Peer.Pool; p != nil {
		name, from = p.Setting, p.Size.Value
	}
	if w.Virtual {
		return phrase.Sprintf("Raise %s from %d if %s more at a time as fast: %s. Or shorten what is asked there: the other requests wait for one of its connections.",
			name, from, words.Answers(s), advice.Carries(s, from))
	}
	return phrase.Sentences(
		phrase.Sprintf("Raise %s from %d to %d, one connection for each of the threads that want one: %s, %d carry up to %s times as many if %s %d at a time as fast as %d. Or shorten what is asked there.",
			name, from, to, advice.Carries(s, from), to, phrase.Decimal(float64(to)/float64(max(from, 1))), words.Answers(s), to, from),
		advice.ThreadsInVain(s))
}
