package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// downstreamSlow: the threads wait for the answers of one peer.
func downstreamSlow() Cause {
	return Cause{
		Name:    model.CauseDownstream,
		Now:     rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty { return When(s.Waits.Cause == model.CauseDownstream, Surely) }},
		Full:    func(s *symptoms.Symptoms, _ model.Cause) bool { return s.Waits.Cause == model.CauseDownstream },
		Depth:   60,
		Because: becauseUnknown,
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return words.Join(words.WaitNumbers(s), words.PeerNumbers(s), words.StackNumbers(s.Now))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return adviseDownstream(s) },
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			return downstreamSteps(s), "More threads: they only move the wait to " + words.WaitPeer(s) + "."
		},
		Book: Runbook{
			Title:     "the threads wait for one peer",
			Seen:      "All threads are busy, and at least half of them have a request in flight to one peer, or wait for it to answer a connect. `process.downstream` in the JSON and `tcpdiag_downstream_connections` count all peers.",
			Change:    "What that peer is slow at; a timeout on the client below that of the callers.",
			Vain:      "More threads: they wait there, too.",
			Holds:     "the threads are used up, and half of the busy ones have a request in flight to one peer",
			Otherwise: "possible_downstream beside max_threads",
		},
	}
}

func downstreamSteps(s *symptoms.Symptoms) []model.Step {
	peer := words.WaitPeer(s)
	if s.Waits.Peer.Connecting > s.Waits.Peer.InFlight {
		return []model.Step{
			advice.Action(phrase.Sprintf("Find out why no connection to %s is answered: down, its own accept queue full, or a firewall", peer)),
			advice.Action("Set a connect timeout on the client, below that of the callers here"),
		}
	}
	return []model.Step{
		advice.Action(phrase.Sprintf("Look at %s: what it is asked, and what it waits for", peer)),
		advice.Action("Set a timeout on the client, below that of the callers here: it frees the threads of those that have given up"),
	}
}

// adviseDownstream: no limit of Tomcat's makes the peer answer sooner.
func adviseDownstream(s *symptoms.Symptoms) string {
	w := &s.Waits
	if w.Peer.Connecting > w.Peer.InFlight {
		return phrase.Sentences(
			phrase.Sprintf("Find out why no connection to %s is answered: it is down, its own accept queue is full, or a firewall drops the packets.", words.WaitPeer(s)),
			"Set a connect timeout on the client, so that a thread is not held for longer than its own caller waits.",
			advice.ThreadsInVain(s))
	}
	return phrase.Sentences(
		phrase.Sprintf("Look at %s: what it is asked, and what it waits for. A timeout on the client, below that of the callers here, frees the threads of those that have given up.", words.WaitPeer(s)),
		advice.ThreadsInVain(s))
}
