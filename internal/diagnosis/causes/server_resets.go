package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// serverResets: the server ends connections that it has accepted with a reset, or without an answer.
func serverResets() Cause {
	return Cause{
		Name: model.CauseServerResets,
		Now: rule[*symptoms.Symptoms]{
			holds: func(s *symptoms.Symptoms) Certainty {
				return When(s.ResetMany()+s.TurnedOut() > 0, Surely)
			},
			refuted: []refutation[*symptoms.Symptoms]{
				{"nine tenths of those that failed were refused before it listened", (*symptoms.Symptoms).RefusedEarlier},
				{"a listener closed with clients in its queue", func(s *symptoms.Symptoms) bool { return s.ResetInQueue() > 0 || s.Closed != nil }},
				{"the accept queue overflowed and net.ipv4.tcp_abort_on_overflow is 1", func(s *symptoms.Symptoms) bool { return s.ResetByOverflow() }},
			},
		},
		Near: func(s *symptoms.Symptoms) bool {
			return s.ClosedUnread() || s.ClosedEarly() > 0 || s.ResetInAnswer() > 0 || s.ClosedUnanswered() > 0 || s.OnlyAlerted()
		},
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string { return " because " + ResetPhrase(s) },
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return words.Join(ResetPhrase(s), words.ResetNumbers(s), words.ConnectionNumbers(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return advice.Resets(s) },
		Steps:  func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) { return advice.ResetSteps(s) },
		Book: Runbook{
			Title:     "the server resets or ends connections that it has accepted",
			Seen:      "Clients that were let in were reset by the server, or it ended their connections without a byte of an answer. Seen by their handshakes (CAP_NET_RAW). `TCPAbortOnClose` of the network namespace counts connections that were closed with unread bytes, a client's there, too: which RSTs leave the server's port tells which. SO_LINGER 0 in the midst of an answer shows in the two RSTs that follow it, unless the client ended its side. A failed TLS handshake shows in an answer of 7 bytes.",
			Clients:   "Connection reset, or broken pipe, in the midst of an upload; an empty reply, or a premature end.",
			Check:     "TLS without a version or cipher in common; a `connectionTimeout` of milliseconds that was meant in seconds; a forwarder (docker-proxy) with nobody behind it; uploads that are rejected (413) beyond `maxSwallowSize`; handlers that answer before they have read the body; a proxy that keeps connections longer than `keepAliveTimeout` and sends its next request into one that is being closed.",
			Change:    "`server.tomcat.max-swallow-size=-1`, or read the body; a keepAliveTimeout above the proxy's.",
			Vain:      "More threads or connections.",
			Holds:     "the server reset three clients or more after their handshake, one of twenty that came, and no listener closed (of another protocol than HTTP those that are connected count as well; nine resets and fewer of one address do not while others are connected and nobody else comes; fewer are a warning, `clients_kept_out`); or it ended, without an answer, the connections of a twentieth of the clients that ended, and of most that had none: where its protocol is not known to be HTTP, of all that came lately or are connected, and as a warning, unless nobody has had a byte; as a warning, a fifth of the connections that came to the network namespace were closed with unread bytes, and as many RSTs of the server's own left its port, or, where handshakes are not followed, its process has no outgoing connections; or RSTs as many as that left its port, and answered segments of connections that had been closed; or a twentieth of the clients that came were reset before they had acknowledged what was sent; or a fifth of those that came to a connector with TLS, and sent something, had 7 bytes, the length of an alert, and the end of the connection",
			Otherwise: "listener_closed",
		},
	}
}

// ResetPhrase says how many connections the server has reset.
func ResetPhrase(s *symptoms.Symptoms) string {
	n := s.ResetMany()
	if s.OnlyClosedEarly() {
		k := s.ClosedEarly()
		return phrase.Sprintf("%s of clients came on connections that %s had closed before, and %s answered with a reset", phrase.Count(k, "segment"), reading.ServerName(s.Now), phrase.Verb(k, "was", "were"))
	}
	if s.OnlyAlerted() {
		return words.Alerted(s)
	}
	if s.OnlyInAnswer() {
		return words.ResetInAnswer(s)
	}
	if s.ClosesUnanswered() {
		text := phrase.Sprintf("%s ended the connections of %s without an answer", reading.ServerName(s.Now), phrase.Count(s.ClosedUnanswered(), "client"))
		if t := advice.ShortRequestTime(s); t != "" {
			text += "; " + t
		}
		return text
	}
	if n == 0 && s.ClosedByEither() {
		return phrase.Sprintf("%s %s closed with bytes unread (TCPAbortOnClose), by the server or, since both ends are on this machine, by the client", phrase.Count(s.UnreadHere(), "connection"), phrase.Verb(s.UnreadHere(), "was", "were"))
	}
	if n == 0 {
		return phrase.Sprintf("%s %s closed with request bytes unread (TCPAbortOnClose), which resets their clients", phrase.Count(s.UnreadHere(), "connection"), phrase.Verb(s.UnreadHere(), "was", "were"))
	}
	text := phrase.Sprintf("%s reset %s after %s had connected", reading.ServerName(s.Now), phrase.Count(n, "client"), phrase.Verb(n, "it", "they"))
	if k := s.Delta["TCPAbortOnClose"]; k > 0 {
		text += phrase.Sprintf("; %s %s closed with request bytes unread (TCPAbortOnClose)", phrase.Count(k, "connection"), phrase.Verb(k, "was", "were"))
	}
	return text
}
