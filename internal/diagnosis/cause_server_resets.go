package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// serverResets: the server ends connections that it has accepted with a reset.
func serverResets() cause {
	return cause{
		name: model.CauseServerResets,
		now: rule[*judge]{
			holds: func(j *judge) certainty { return when(j.resetByServer() > 0, surely) },
			refuted: []refutation[*judge]{
				{"a listener closed with clients in its queue", func(j *judge) bool { return j.resetInQueue() > 0 || j.Closed != nil }},
				{"the accept queue overflowed and net.ipv4.tcp_abort_on_overflow is 1", func(j *judge) bool { return j.Sysctl["tcp_abort_on_overflow"] == 1 && j.droppedLately() }},
			},
		},
		near:    (*judge).closedUnread,
		because: func(j *judge, _ model.Verdict) string { return " because " + j.resetPhrase() },
		evidence: func(j *judge, _ model.Verdict) string {
			return j.join(j.resetPhrase(), j.resetNumbers(), j.connectionNumbers())
		},
		advice: func(*judge, model.Verdict) string {
			return "Closing a connection with request bytes that nobody has read resets it: uploads beyond what is swallowed (server.tomcat.max-swallow-size, maxSwallowSize), or a handler that answers before it has read the body. Where no bytes were left: SO_LINGER, or an executor that rejects. No limit of connections or threads has a part in it."
		},
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			if j.Delta["TCPAbortOnClose"] == 0 {
				return []model.Step{action("Look into the log for what closes connections: an executor that rejects, a filter, a shutdown")},
					"More threads or connections: these clients had been accepted."
			}
			s := model.Step{Text: "Let Tomcat read the rest of a rejected upload, so that the client gets its answer", Setting: "maxSwallowSize", From: "2MB", To: "-1"}
			if j.Now.Connector != nil && j.Now.Connector.Framework == "spring-boot" {
				s.Setting = "server.tomcat.max-swallow-size"
			}
			s.From = "" // what is in force is not read
			return []model.Step{s, action("Or have clients ask first (Expect: 100-continue), and the handler read the body before it answers")},
				"More threads or connections: these clients had been accepted."
		},
		book: Runbook{
			Title:     "the server resets connections that it has accepted",
			Seen:      "Clients that were let in were reset by the server. Seen by their handshakes (CAP_NET_RAW). `TCPAbortOnClose` of the network namespace counts connections that were closed with unread bytes; a client there that does so counts, too.",
			Clients:   "Connection reset, or broken pipe, in the midst of an upload.",
			Check:     "Uploads that are rejected (413) beyond `maxSwallowSize`; handlers that answer before they have read the body; a proxy that keeps connections longer than `keepAliveTimeout` and sends its next request into one that is being closed.",
			Change:    "`server.tomcat.max-swallow-size=-1`, or read the body; a keepAliveTimeout above the proxy's.",
			Vain:      "More threads or connections.",
			Holds:     "the server reset clients after their handshake, and no listener closed; as a warning, a fifth of the connections that came to the network namespace were closed with unread bytes",
			Otherwise: "listener_closed",
		},
	}
}

func (j *judge) resetPhrase() string {
	n := j.resetByServer()
	if n == 0 {
		return phrase.Sprintf("%s that had come %s closed with bytes that nobody had read (TCPAbortOnClose), which resets their clients", phrase.Count(j.Delta["TCPAbortOnClose"], "connection"), phrase.Verb(j.Delta["TCPAbortOnClose"], "was", "were"))
	}
	s := phrase.Sprintf("%s reset %s after %s had connected", reading.ServerName(j.Now), phrase.Count(n, "client"), phrase.Verb(n, "it", "they"))
	if k := j.Delta["TCPAbortOnClose"]; k > 0 {
		s += phrase.Sprintf("; %s closed with request bytes unread (TCPAbortOnClose)", phrase.Count(k, "connection"))
	}
	return s
}
