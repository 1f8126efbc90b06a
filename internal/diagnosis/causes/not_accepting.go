package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// notAccepting: clients wait, no limit is reached, and the thread that accepts does not.
func notAccepting() Cause {
	return Cause{
		Name: model.CauseNotAccepting,
		moment: rule[*evidence.Moment]{
			holds:   func(m *evidence.Moment) Certainty { return When(m.Pauses(), Possibly) },
			refuted: []refutation[*evidence.Moment]{{"connections were accepted meanwhile", (*evidence.Moment).Accepted}},
		},
		rests: rests(evidence.StrengthAcceptor),
		Now: rule[*symptoms.Symptoms]{
			holds: func(s *symptoms.Symptoms) Certainty {
				return When(s.NothingAccepted() > 0 && acceptorIdle(s), Surely)
			},
			refuted: []refutation[*symptoms.Symptoms]{
				{allTaken, func(s *symptoms.Symptoms) bool { return s.ConnectionsFull }},
				{"a worker accepts there, not a thread for it (NIO2)", func(s *symptoms.Symptoms) bool { return reading.AcceptsWithWorkers(s.Now) }},
				{standsStill, mayStandStill},
			},
		},
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return " because " + words.NothingAccepted(s) + " and " + acceptorPhrase(s) + words.RoomInside(s)
		},
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.Join(words.NothingAccepted(s)+": "+acceptorPhrase(s), words.ConnectionNumbers(s), words.QueueNumbers(s), words.LossNumbers(s, model.CauseNotAccepting, v, true))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if foreign(s) {
				if n, _ := reading.SlotsInUse(s.Now); n > 0 {
					return phrase.Sprintf("See what %s does, and which limits of its own it has (haproxy's maxconn, nginx's worker_connections, the processes or threads of a server that has one for each connection): it holds %s, and takes no more. A longer accept queue would only let more clients wait.", reading.ServerName(s.Now), phrase.Count(n, "connection"))
				}
				return phrase.Sprintf("See what %s does: it is busy with something else, or stuck; or it has only inherited the socket, as a child of a server that has ended: then end it, start the server again, and have it close its descriptors in children (FD_CLOEXEC). A longer accept queue would only let more clients wait.", reading.ServerName(s.Now))
			}
			if unrecognised(s) {
				return "See what its threads do (a thread dump): in a server in which one thread accepts and serves, as the JDK's HttpServer does unless it is given an executor, or Netty by its event loop, a single request that takes long holds up all others; give it an executor, and have no handler block the event loop. If it is a Tomcat: it is still being deployed, or the acceptor thread has ended, as its log says. A longer accept queue would only let more clients wait."
			}
			if s.Now.Acceptor == model.AcceptorMissing {
				return "If the application is still being deployed, the port opened too early: have it open after the start (bindOnInit=false), and probe readiness by HTTP, not by connecting. Else look for the thread's end in the log (OutOfMemoryError): only a restart brings it back. A longer accept queue would only let more clients wait."
			}
			if debugged(s) {
				return "A debugger is connected: resume the threads that it, or a breakpoint, has suspended, or detach it. Else see what the two threads wait for (--thread-dump as its user and group, or jstack PID). A longer accept queue, more threads or connections would only let more clients wait."
			}
			return "Find out who paused the connector (a deployment, Lifecycle code, JMX: ProtocolHandler.pause) and resume it. A longer accept queue, more threads or connections would only let more clients wait."
		},
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			const not = "acceptCount, threads or connections: nobody is taken out of the queue, however long it is."
			if n, _ := reading.SlotsInUse(s.Now); foreign(s) && n > 0 {
				return []model.Step{
					advice.Action(phrase.Sprintf("See which limits of its own %s has, as it holds %s and takes no more: haproxy's maxconn, nginx's worker_connections, the processes or threads of a server that has one for each connection", reading.ServerName(s.Now), phrase.Count(n, "connection"))),
					advice.Action(phrase.Sprintf("Else see what %s is busy with, or waits for", reading.ServerName(s.Now))),
				}, not
			}
			if foreign(s) {
				return []model.Step{
					advice.Action(phrase.Sprintf("See what %s does: it is busy with something else, or stuck", reading.ServerName(s.Now))),
					advice.Action("If it is a child that has inherited the socket of a server which has ended: end it, and start the server again"),
				}, not
			}
			if unrecognised(s) {
				return []model.Step{
					advice.DumpStep(s, "See what its threads do: where one thread accepts and serves, as in the JDK's HttpServer without an executor, or by an event loop (Netty), a single request holds up all others"),
					advice.Action("If it is a Tomcat: its log says whether it is still being deployed, or the acceptor thread has ended"),
				}, not
			}
			if s.Now.Acceptor == model.AcceptorMissing && !reading.SpeaksHTTP(s.Now) {
				return []model.Step{
					advice.Action("Look into the log of the start: an AJP connector without its secret (secretRequired is true unless it is set) opens its port and does not start"),
					advice.Action("Give the Connector and the proxy the same secret, and restart; or see what else has kept it from starting, or ended its acceptor thread"),
				}, not
			}
			if s.Now.Acceptor == model.AcceptorMissing {
				return []model.Step{
					advice.Action("Look into the log: the application is still being deployed, or the acceptor thread has ended (OutOfMemoryError)"),
					advice.Action("If it is being deployed: open the port after the start (bindOnInit=false), and probe readiness by HTTP. If the thread has ended: restart"),
				}, not
			}
			if debugged(s) {
				return []model.Step{
					advice.Action("Resume the threads that the debugger, or a breakpoint, has suspended, or detach it"),
					advice.DumpStep(s, "Else see what the acceptor and the poller wait for"),
				}, not
			}
			return []model.Step{
				advice.Action("Find out who paused the connector: a deployment or shutdown that hangs, code, or JMX (pause of the ProtocolHandler)"),
				advice.Action("Resume it (resume of the same), or restart"),
			}, not
		},
		Book: Runbook{
			Title:     "nothing is accepted, and no limit is reached",
			Seen:      "Clients wait in the accept queue, the oldest of them stays the oldest, connections are free, and the acceptor thread sleeps for set times (a paused connector), stands with the poller while a debugger is connected, or is not there. Connections whose clients have closed and sent nothing, as a probe of the port does, wait for nothing: while there are no others, and the queue is not full, the status is `ok`.",
			Clients:   "They are connected and get no answer: read timeouts; connect timeouts once the queue is full.",
			Check:     "The log: a deployment that has not ended (the port opens before that with `bindOnInit`), a connector that failed to start (AJP without its `secret`), a shutdown that hangs, an OutOfMemoryError that ended the thread.",
			Change:    "Resume the connector, or the threads in the debugger, or restart. Probe readiness by HTTP, not by connecting: the kernel completes handshakes for a server that accepts nobody.",
			Vain:      "acceptCount, threads or connections.",
			Holds:     "nobody was taken out of the accept queue between two readings, and the acceptor sleeps for set times with descriptors left, or stands with the poller while requests are unread, or clients' ends unnoticed, and workers are idle, and a debugger is connected, or is missing",
			Otherwise: "accept_queue, with how long nothing has been accepted, and that the acceptor and the poller stand",
		},
	}
}

// acceptorIdle: it was seen, and neither accepts nor waits for a limit.
func acceptorIdle(s *symptoms.Symptoms) bool {
	return s.Now.Acceptor == model.AcceptorPauses || s.Now.Acceptor == model.AcceptorMissing || debugged(s)
}

const standsToo = "the poller stands as well, and requests are unread, or clients' ends unnoticed, in front of idle workers"

// allStand: the acceptor stands as at a limit, and the other threads of the connector do, too: suspended, or at a safepoint.
func allStand(s *symptoms.Symptoms) bool {
	return s.Now.Acceptor == model.AcceptorAtLimit && s.Both(reading.Suspended)
}

// debugged: they do, and a debugger is connected.
func debugged(s *symptoms.Symptoms) bool {
	return allStand(s) && s.Both(func(l *model.Listener) bool { return l.Connector.Debugger })
}

// foreign: it is no JVM, of whose threads the names say nothing.
func foreign(s *symptoms.Symptoms) bool {
	return s.Now.Acceptor == model.AcceptorMissing && s.Now.Connector.Kind().Name == model.ServerOther().Name
}

// unrecognised: it is a JVM, and whether its server has a thread that only accepts is not known.
func unrecognised(s *symptoms.Symptoms) bool {
	return s.Now.Acceptor == model.AcceptorMissing && reading.OtherJVM(s.Now)
}

// NobodyAccepts means that whatever the limits are, clients wait and the acceptor is idle or missing.
func NobodyAccepts(s *symptoms.Symptoms) bool {
	return acceptorIdle(s) && s.NothingAccepted() > 0 && !reading.AcceptsWithWorkers(s.Now) && !mayStandStill(s)
}

const standsStill = "the JVM stood still for a fifth of the time, and with it the acceptor"

// mayStandStill: a thread that is there sleeps at a safepoint as well.
func mayStandStill(s *symptoms.Symptoms) bool {
	return s.Now.Acceptor != model.AcceptorMissing && s.Paused()
}

func acceptorPhrase(s *symptoms.Symptoms) string {
	if n, _ := reading.SlotsInUse(s.Now); foreign(s) && n > 0 {
		return phrase.Sprintf("no thread of %s waits for others there, which holds %s", reading.ServerName(s.Now), phrase.Count(n, "connection"))
	}
	if foreign(s) || unrecognised(s) {
		return "no thread of " + reading.ServerName(s.Now) + " waits for connections there"
	}
	if s.Now.Acceptor == model.AcceptorMissing {
		return "no acceptor thread is there (not started yet, or ended)"
	}
	if debugged(s) {
		return "the acceptor and the poller thread stand, as where a debugger has suspended them"
	}
	return "the acceptor thread only sleeps, as in a paused connector"
}
