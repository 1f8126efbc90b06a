package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// downstreamSlow: the threads wait for the answers of one peer.
func downstreamSlow() cause {
	return cause{
		name:    model.CauseDownstream,
		now:     rule[*judge]{holds: func(j *judge) certainty { return when(j.waits.cause == model.CauseDownstream, surely) }},
		full:    func(j *judge) bool { return j.waits.cause == model.CauseDownstream },
		depth:   60,
		because: (*judge).becauseUnknown,
		evidence: func(j *judge, _ model.Verdict) string {
			return j.join(j.waitNumbers(), j.peerNumbers(), stackNumbers(j.Now))
		},
		advice: func(j *judge, _ model.Verdict) string { return j.adviseDownstream() },
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			return j.downstreamSteps(), "More threads: they only move the wait to " + peerName(j.waits.peer) + "."
		},
		book: Runbook{
			Title:     "the threads wait for one peer",
			Seen:      "All threads are busy, and at least half of them have a request in flight to one peer, or wait for it to answer a connect. `process.downstream` in the JSON and `tcpdiag_downstream_connections` count all peers.",
			Change:    "What that peer is slow at; a timeout on the client below that of the callers.",
			Vain:      "More threads: they wait there, too.",
			Holds:     "the threads are used up, and half of the busy ones have a request in flight to one peer",
			Otherwise: "possible_downstream beside max_threads",
		},
	}
}

func (j *judge) downstreamSteps() []model.Step {
	peer := peerName(j.waits.peer)
	if j.waits.peer.Connecting > j.waits.peer.InFlight {
		return []model.Step{
			action(phrase.Sprintf("Find out why %s does not answer a connection: down, its own accept queue full, or a firewall", peer)),
			action("Set a connect timeout on the client, below that of the callers here"),
		}
	}
	return []model.Step{
		action(phrase.Sprintf("Look at %s: what it is asked, and what it waits for", peer)),
		action("Set a timeout on the client, below that of the callers here: it frees the threads of those that have given up"),
	}
}

// adviseDownstream: no limit of Tomcat's makes the peer answer sooner.
func (j *judge) adviseDownstream() string {
	w := &j.waits
	if w.peer.Connecting > w.peer.InFlight {
		return phrase.Sentences(
			phrase.Sprintf("Find out why %s does not answer a connection: it is down, its own accept queue is full, or a firewall drops the packets.", peerName(w.peer)),
			"Set a connect timeout on the client, so that a thread is not held for longer than its own caller waits.",
			j.threadsInVain())
	}
	return phrase.Sentences(
		phrase.Sprintf("Look at %s: what it is asked, and what it waits for. A timeout on the client, below that of the callers here, frees the threads of those that have given up.", peerName(w.peer)),
		j.threadsInVain())
}
