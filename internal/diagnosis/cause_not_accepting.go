package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// notAccepting: clients wait, no limit is reached, and the thread that accepts does not.
func notAccepting() cause {
	return cause{
		name: model.CauseNotAccepting,
		moment: rule[*evidence.Moment]{
			holds:   func(m *evidence.Moment) certainty { return when(m.Pauses(), possibly) },
			refuted: []refutation[*evidence.Moment]{{"connections were accepted meanwhile", (*evidence.Moment).Accepted}},
		},
		rests: rests(evidence.StrengthAcceptor),
		now: rule[*judge]{
			holds: func(j *judge) certainty {
				return when(j.NothingAccepted() > 0 && j.acceptorIdle(), surely)
			},
			refuted: []refutation[*judge]{
				{allTaken, func(j *judge) bool { return j.connectionsFull }},
				{"a worker accepts there, not a thread for it (NIO2)", func(j *judge) bool { return reading.AcceptsWithWorkers(j.Now) }},
			},
		},
		because: func(j *judge, _ model.Verdict) string {
			return " because " + j.nothingAcceptedPhrase() + " and " + j.acceptorPhrase() + j.roomInside()
		},
		evidence: func(j *judge, v model.Verdict) string {
			return j.join(j.nothingAcceptedPhrase()+": "+j.acceptorPhrase(), j.connectionNumbers(), j.queueNumbers(), j.lossNumbers(model.CauseNotAccepting, v, true))
		},
		advice: func(j *judge, _ model.Verdict) string {
			if j.Now.Acceptor == model.AcceptorMissing {
				return "If the application is still being deployed, the port opened too early: have it open after the start (bindOnInit=false), and probe readiness by HTTP, not by connecting. Else look for the thread's end in the log (OutOfMemoryError): only a restart brings it back. A longer accept queue would only let more clients wait."
			}
			return "Find out who paused the connector (a deployment, Lifecycle code, JMX: ProtocolHandler.pause) and resume it. A longer accept queue, more threads or connections would only let more clients wait."
		},
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			const not = "acceptCount, threads or connections: nobody is taken out of the queue, however long it is."
			if j.Now.Acceptor == model.AcceptorMissing {
				return []model.Step{
					action("Look into the log: the application is still being deployed, or the acceptor thread has ended (OutOfMemoryError)"),
					action("If it is being deployed: open the port after the start (bindOnInit=false), and probe readiness by HTTP. If the thread has ended: restart"),
				}, not
			}
			return []model.Step{
				action("Find out who paused the connector: a deployment or shutdown that hangs, code, or JMX (pause of the ProtocolHandler)"),
				action("Resume it (resume of the same), or restart"),
			}, not
		},
		book: Runbook{
			Title:     "nothing is accepted, and no limit is reached",
			Seen:      "Clients wait in the accept queue, the oldest of them stays the oldest, connections are free, and the acceptor thread sleeps for set times (a paused connector) or is not there.",
			Clients:   "They are connected and get no answer: read timeouts; connect timeouts once the queue is full.",
			Check:     "The log: a deployment that has not ended (the port opens before that with `bindOnInit`), a shutdown that hangs, an OutOfMemoryError that ended the thread.",
			Change:    "Resume the connector, or restart. Probe readiness by HTTP, not by connecting: the kernel completes handshakes for a server that accepts nobody.",
			Vain:      "acceptCount, threads or connections.",
			Holds:     "nobody was taken out of the accept queue between two readings, and the acceptor sleeps for set times with descriptors left, or is missing",
			Otherwise: "accept_queue, with how long nothing has been accepted",
		},
	}
}

// acceptorIdle: it was seen, and neither accepts nor waits for a limit.
func (j *judge) acceptorIdle() bool {
	return j.Now.Acceptor == model.AcceptorPauses || j.Now.Acceptor == model.AcceptorMissing
}

// nobodyAccepts: whatever the limits are, clients wait and the acceptor is idle or missing.
func (j *judge) nobodyAccepts() bool {
	return j.acceptorIdle() && j.NothingAccepted() > 0 && !reading.AcceptsWithWorkers(j.Now)
}

// nothingAcceptedPhrase is the fact alone.
func (j *judge) nothingAcceptedPhrase() string {
	return "nothing has been accepted for " + phrase.Seconds(j.NothingAccepted()) + " and longer"
}

func (j *judge) acceptorPhrase() string {
	if j.Now.Acceptor == model.AcceptorMissing {
		return "no acceptor thread is there (not started yet, or ended)"
	}
	return "the acceptor thread only sleeps, as of a paused connector"
}
