package advice

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// ThreadsInVain says what more threads would do.
func ThreadsInVain(s *symptoms.Symptoms) string {
	w := &s.Waits
	if w.Cause == model.CauseConnectionPool {
		return phrase.Sprintf("More threads would not help: they would wait for one of the same %s, and %s.",
			phrase.Count(w.Peer.Connections, "connection"), Carries(s, w.Peer.Connections))
	}
	text := phrase.Sprintf("More threads only move the wait to %s", words.WaitPeer(s))
	if t, ok := w.AnswerTime(); ok && !w.Shared() && w.Peer.Connecting <= w.Peer.InFlight {
		return text + phrase.Sprintf(": at about %s an answer it takes %s at a time to serve %s a second, and it is served faster only if it answers more at a time just as fast.",
			phrase.Seconds(t), phrase.Count(w.There, "request"), phrase.Decimal(float64(w.There)/t.Seconds()))
	}
	return text + "."
}

// WaitSteps are what to do about a worker process that is stopped, or a peer that answers no connect.
func WaitSteps(s *symptoms.Symptoms) []model.Step {
	if s.WorkerStands() {
		which := "process"
		if s.Now.Process.StoppedChildren > 1 {
			which = "processes"
		}
		return []model.Step{Command(phrase.Sprintf("Let the worker %s go on, and find out who stopped %s", which, phrase.Verb(s.Now.Process.StoppedChildren, "it", "them")), Continue(s.Now.Process))}
	}
	return []model.Step{
		Action(phrase.Sprintf("Find out why no connection to %s is answered: down, its own accept queue full, or a firewall", words.PeerName(s.SilentPeer()))),
		Action("Set a connect timeout on the client, below that of the callers here"),
	}
}

// Carries is what that many connections carry, by Little's law.
func Carries(s *symptoms.Symptoms, connections int) string {
	w := &s.Waits
	t, ok := w.AnswerTime()
	if !ok {
		return phrase.Sprintf("%s carry what they carry now", phrase.Count(connections, "connection"))
	}
	return phrase.Sprintf("at about %s an answer %s carry %s requests a second",
		phrase.Seconds(t), phrase.Count(connections, "connection"), phrase.Decimal(float64(connections)/t.Seconds()))
}
