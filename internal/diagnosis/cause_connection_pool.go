package diagnosis

import (
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// connectionPool: the threads wait for one of the connections that a pool has to one peer.
func connectionPool() cause {
	return cause{
		name:    model.CauseConnectionPool,
		now:     rule[*judge]{holds: func(j *judge) certainty { return when(j.waits.cause == model.CauseConnectionPool, surely) }},
		full:    func(j *judge) bool { return j.waits.cause == model.CauseConnectionPool },
		depth:   60,
		because: (*judge).becauseUnknown,
		evidence: func(j *judge, _ model.Verdict) string {
			return j.join(j.waitNumbers(), j.peerNumbers(), stackNumbers(j.Now))
		},
		advice: func(j *judge, _ model.Verdict) string { return j.advisePool() },
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			return j.poolSteps(), "More threads: they would wait for one of the same connections."
		},
		book: Runbook{
			Title:     "a pool's connections to one backend are all in use",
			Seen:      "All threads are busy, every connection to one backend is in flight, and other busy threads have none (or, with `tcpdiag plan --backend-connections`, the connections carry fewer requests per second than the threads).",
			Change:    "A larger pool, if the backend can handle it, or faster answers of the backend.",
			Vain:      "More threads. 40 threads that share 10 connections to a backend of 2 s serve 5 requests per second, and 150 threads serve 5 as well.",
			Holds:     "the threads are used up, every connection to one peer is in flight in two readings, and busy threads are without one",
			Otherwise: "possible_connection_pool beside max_threads",
		},
	}
}

func (j *judge) poolSteps() []model.Step {
	w := &j.waits
	peer := peerName(w.peer)
	s := model.Step{
		Text:    phrase.Sprintf("Raise the pool if %s answers more at a time as fast", peer),
		Setting: "the pool of connections to " + peer, From: strconv.Itoa(w.peer.Connections),
	}
	if p := w.peer.Pool; p != nil {
		s.Setting, s.From, s.File = p.Setting, strconv.Itoa(p.Size.Value), foundIn(&p.Size)
	}
	if !w.virtual {
		s.To, s.Limit = strconv.Itoa(w.there+w.without()), reading.LimitConnectionPool
	}
	return []model.Step{action(phrase.Sprintf("Shorten what is asked of %s: each connection is in use until its answer has come", peer)), s}
}

// advisePool: as many connections as threads use it. Whether the peer can handle that
// is not known.
func (j *judge) advisePool() string {
	w := &j.waits
	to := w.there + w.without()
	name, from := "the pool of connections to "+peerName(w.peer), w.peer.Connections
	if p := w.peer.Pool; p != nil {
		name, from = p.Setting, p.Size.Value
	}
	if w.virtual {
		return phrase.Sprintf("Raise %s from %d if %s answers more at a time as fast: %s. Or shorten what is asked there: the other requests wait for one of its connections.",
			name, from, peerName(w.peer), j.carries(from))
	}
	return phrase.Sentences(
		phrase.Sprintf("Raise %s from %d to %d, one connection for each of the threads that want one: %s, %d carry up to %s times as many if %s answers %d at a time as fast as %d. Or shorten what is asked there.",
			name, from, to, j.carries(from), to, phrase.Decimal(float64(to)/float64(max(from, 1))), peerName(w.peer), to, from),
		j.threadsInVain())
}
