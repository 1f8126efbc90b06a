package causes

import (
	"time"

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
				return When(s.ResetByServer()+s.ClosedUnanswered() > 0, Surely)
			},
			refuted: []refutation[*symptoms.Symptoms]{
				{"nine tenths of those that failed were refused before it listened", (*symptoms.Symptoms).RefusedEarlier},
				{"a listener closed with clients in its queue", func(s *symptoms.Symptoms) bool { return s.ResetInQueue() > 0 || s.Closed != nil }},
				{"the accept queue overflowed and net.ipv4.tcp_abort_on_overflow is 1", func(s *symptoms.Symptoms) bool { return s.Sysctl["tcp_abort_on_overflow"] == 1 && s.DroppedLately() }},
			},
		},
		Near: func(s *symptoms.Symptoms) bool {
			return s.ClosedUnread() || s.ClosedEarly() > 0 || s.ResetInAnswer() > 0 || s.OnlyAlerted()
		},
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string { return " because " + ResetPhrase(s) },
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return words.Join(ResetPhrase(s), words.ResetNumbers(s), words.ConnectionNumbers(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.OnlyClosedEarly() {
				return phrase.Sprintf("Whoever keeps these connections (a proxy, a balancer, a client's pool) keeps them for longer than the server does, and sends its next request into one that is closed. Have the server keep them for longer: %s above the other end's idle timeout%s, and %s large or -1. Or shorten that timeout there.", advice.KeepAliveSetting().Name(s.Now), idleTimeout(s), "maxKeepAliveRequests")
			}
			if !reading.IsTomcat(s.Now) {
				return phrase.Sprintf("See why %s ends these connections: a forwarder (docker-proxy, a proxy) does where nobody listens at the address that it passes them on to. Its log, or ss -tnp state syn-sent, shows where that is.", reading.ServerName(s.Now))
			}
			if s.OnlyAlerted() {
				return "See why: openssl s_client from a client's host, or -Djavax.net.debug=ssl:handshake of the server's JVM. Mostly client and server have no version of TLS or no cipher in common: compare what the clients offer with protocols and ciphers of the Connector (server.ssl.enabled-protocols, server.ssl.ciphers). No limit of connections or threads has a part in it."
			}
			if s.OnlyInAnswer() {
				return "Let the server send the rest before a connection ends: it closes with SO_LINGER 0 (connectionLinger of the Connector, socket.soLingerTime, a customizer that sets them), which discards what has not been sent yet. -1 is the default. No limit of connections or threads has a part in it."
			}
			if closesUnanswered(s) {
				text := "Look into the log for what ends connections before an answer: a timeout, an executor that rejects, a filter, a shutdown. No limit of connections or threads has a part in it."
				if t := shortTimeout(s); t != "" {
					text = phrase.Capital(t) + ", or for the next part of it: raise that if clients may need longer. " + text
				}
				return text
			}
			if s.ResetByServer() == 0 && s.ClosedByEither() {
				return "Find out which end it is: an access log with responses that were not sent whole speaks for clients that leave early (of streams, of slow answers), one with 413 or answers to uploads for the server: uploads beyond what is swallowed (server.tomcat.max-swallow-size, maxSwallowSize), or a handler that answers before it has read the body. No limit of connections or threads has a part in it."
			}
			return "Closing a connection with request bytes that nobody has read resets it: uploads beyond what is swallowed (server.tomcat.max-swallow-size, maxSwallowSize), or a handler that answers before it has read the body. Where no bytes were left: SO_LINGER, or an executor that rejects. No limit of connections or threads has a part in it."
		},
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			if s.ResetByServer() == 0 && shortTimeout(s) != "" && (s.OnlyClosedEarly() || s.Delta["TCPAbortOnClose"] > 0) {
				return append(moreTime(s), advice.Action("If they send whole requests at once: see for how long the other end keeps an idle connection, and keep it for longer here ("+advice.KeepAliveSetting().Name(s.Now)+")")), accepted
			}
			if s.OnlyClosedEarly() {
				return []model.Step{
					advice.Action("See for how long the other end keeps an idle connection (nginx keepalive_timeout of the upstream, a balancer's idle timeout, the client pool's)"),
					advice.Action(phrase.Sprintf("Keep them for longer than that here (%s%s), or shorten it there", advice.KeepAliveSetting().Name(s.Now), idleTimeout(s))),
				}, accepted
			}
			if s.OnlyAlerted() {
				return []model.Step{
					advice.Action("See which alert it is, from a client's host: openssl s_client -connect HOST:PORT, with -tls1_2 or -tls1_3 as the clients ask; or -Djavax.net.debug=ssl:handshake of the server's JVM"),
					advice.Action("Then let both have a version of TLS and a cipher in common: protocols and ciphers of the Connector (server.ssl.enabled-protocols, server.ssl.ciphers), or those of the clients"),
				}, accepted
			}
			if !reading.IsTomcat(s.Now) {
				return []model.Step{
					advice.Action(phrase.Sprintf("See in its log why %s ends them: a forwarder (docker-proxy, a proxy) does where nobody listens at the address that it passes them on to", reading.ServerName(s.Now))),
					advice.Action("Then ask that address, from here and from where it is (in a container: a server that listens on 127.0.0.1 alone)"),
				}, accepted
			}
			if s.OnlyInAnswer() {
				return []model.Step{advice.LingerStep()}, accepted
			}
			if closesUnanswered(s) {
				return closedUnansweredSteps(s), accepted
			}
			if s.Delta["TCPAbortOnClose"] == 0 {
				return []model.Step{advice.Action("Look into the log for what closes connections: an executor that rejects, a filter, a shutdown")}, accepted
			}
			step := model.Step{Text: "Let Tomcat read the rest of a rejected upload, so that the client gets its answer; TCPAbortOnClose (nstat) then stands still", Setting: "maxSwallowSize", To: "-1"} // what is in force is not read
			if s.Now.Connector != nil && s.Now.Connector.Framework == "spring-boot" {
				step.Setting = "server.tomcat.max-swallow-size"
			}
			if s.ResetByServer() == 0 && s.ClosedByEither() {
				return []model.Step{advice.Action("Find out which end closes them, by the access log: responses that were not sent whole (clients that leave), or 413 and short answers to uploads (the server)"), step}, accepted
			}
			return []model.Step{step, advice.Action("Or have clients ask first (Expect: 100-continue), and the handler read the body before it answers")}, accepted
		},
		Book: Runbook{
			Title:     "the server resets or ends connections that it has accepted",
			Seen:      "Clients that were let in were reset by the server, or it ended their connections without a byte of an answer. Seen by their handshakes (CAP_NET_RAW). `TCPAbortOnClose` of the network namespace counts connections that were closed with unread bytes; a client there that does so counts, too. SO_LINGER 0 in the midst of an answer shows in the two RSTs that follow it, unless the client ended its side. A failed TLS handshake shows in an answer of 7 bytes.",
			Clients:   "Connection reset, or broken pipe, in the midst of an upload; an empty reply, or a premature end.",
			Check:     "TLS without a version or cipher in common; a `connectionTimeout` of milliseconds that was meant in seconds; a forwarder (docker-proxy) with nobody behind it; uploads that are rejected (413) beyond `maxSwallowSize`; handlers that answer before they have read the body; a proxy that keeps connections longer than `keepAliveTimeout` and sends its next request into one that is being closed.",
			Change:    "`server.tomcat.max-swallow-size=-1`, or read the body; a keepAliveTimeout above the proxy's.",
			Vain:      "More threads or connections.",
			Holds:     "the server reset clients after their handshake, and no listener closed; or it ended, without an answer, the connections of a twentieth of the clients that ended, and of most that had none; as a warning, a fifth of the connections that came to the network namespace were closed with unread bytes, or RSTs as many as that answered segments of connections that had been closed; or a twentieth of the clients that came were reset before they had acknowledged what was sent; or a fifth of those that came to a connector with TLS, and sent something, had 7 bytes, the length of an alert, and the end of the connection",
			Otherwise: "listener_closed",
		},
	}
}

// closesUnanswered: most of those that the server has turned away it has not reset.
func closesUnanswered(s *symptoms.Symptoms) bool { return s.ClosedUnanswered() > s.ResetByServer() }

// closedUnansweredSteps are what to look at where the server ends connections without an answer.
func closedUnansweredSteps(s *symptoms.Symptoms) (do []model.Step) {
	if shortTimeout(s) != "" {
		do = moreTime(s)
	}
	return append(do, advice.Action("Look into the log for what ends connections before an answer: a timeout, an executor that rejects, a filter, a shutdown"))
}

// moreTime is a longer connectionTimeout.
func moreTime(s *symptoms.Symptoms) []model.Step {
	return []model.Step{advice.ConnectionTimeoutSetting().ChangeTime(s, s.Now.Connector.ConnectionTimeout, "Give clients time to send a request, and the next part of it in an upload (a number without a unit is milliseconds)", usualTimeout)}
}

// accepted is what does not help them.
const accepted = "More threads or connections: these clients had been accepted."

// usualTimeout is that of the server.xml that Tomcat comes with.
const usualTimeout = 20 * time.Second

// shortTimeout says that the server does not wait long for a request, "" where it does or that is not known.
func shortTimeout(s *symptoms.Symptoms) string {
	if s.Now.Connector == nil {
		return ""
	}
	t := s.Now.Connector.ConnectionTimeout
	if t == nil || t.Value <= 0 || t.Value >= advice.ShortTimeout {
		return ""
	}
	return phrase.Sprintf("a client has %s for its request (%s)", phrase.Seconds(t.Value), advice.ConnectionTimeoutSetting().Name(s.Now))
}

// idleTimeout is how long the server keeps an idle connection.
func idleTimeout(s *symptoms.Symptoms) string {
	t := s.Now.Connector.KeepAlive()
	if t == nil || t.Value <= 0 {
		return ""
	}
	return ", now " + phrase.Seconds(t.Value)
}

// ResetPhrase says how many connections the server has reset.
func ResetPhrase(s *symptoms.Symptoms) string {
	n := s.ResetByServer()
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
	if closesUnanswered(s) {
		text := phrase.Sprintf("%s ended the connections of %s without an answer", reading.ServerName(s.Now), phrase.Count(s.ClosedUnanswered(), "client"))
		if t := shortTimeout(s); t != "" {
			text += "; " + t
		}
		return text
	}
	if n == 0 && s.ClosedByEither() {
		return phrase.Sprintf("%s %s closed with bytes unread (TCPAbortOnClose), by the server or, since both ends are on this machine, by the client", phrase.Count(s.UnreadCloses(), "connection"), phrase.Verb(s.UnreadCloses(), "was", "were"))
	}
	if n == 0 {
		return phrase.Sprintf("%s %s closed with request bytes unread (TCPAbortOnClose), which resets their clients", phrase.Count(s.UnreadCloses(), "connection"), phrase.Verb(s.UnreadCloses(), "was", "were"))
	}
	text := phrase.Sprintf("%s reset %s after %s had connected", reading.ServerName(s.Now), phrase.Count(n, "client"), phrase.Verb(n, "it", "they"))
	if k := s.Delta["TCPAbortOnClose"]; k > 0 {
		text += phrase.Sprintf("; %s %s closed with request bytes unread (TCPAbortOnClose)", phrase.Count(k, "connection"), phrase.Verb(k, "was", "were"))
	}
	return text
}
