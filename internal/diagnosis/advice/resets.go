package advice

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Resets is what to look at where the server ends connections.
func Resets(s *symptoms.Symptoms) string {
	if s.OnlyClosedEarly() {
		return phrase.Sprintf("Whoever keeps these connections (a proxy, a balancer, a client's pool) keeps them for longer than the server does, and sends its next request into one that is closed. Have the server keep them for longer: %s above the other end's idle timeout%s, and %s large or -1. Or shorten that timeout there.", KeepAliveSetting().Name(s.Now), IdleTimeout(s), "maxKeepAliveRequests")
	}
	if s.ClosesUnanswered() && s.TurnedOut() == 0 {
		return phrase.Sprintf("See in its log why %s ends these connections. Nothing is lost where its protocol has messages without an answer: a CancelRequest to PostgreSQL is a connection of its own, which it ends without a byte. A scanner that speaks another protocol is sent away, too.", reading.ServerName(s.Now))
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
	if s.ClosesUnanswered() {
		text := "Look into the log for what ends connections before an answer: a timeout, an executor that rejects, a filter, a shutdown. No limit of connections or threads has a part in it."
		if t := ShortRequestTime(s); t != "" {
			text = phrase.Capital(t) + ", or for the next part of it: raise that if clients may need longer. " + text
		}
		return text
	}
	if s.ResetMany() == 0 && s.ClosedByEither() {
		return "Find out which end it is: an access log with responses that were not sent whole speaks for clients that leave early (of streams, of slow answers), one with 413 or answers to uploads for the server: uploads beyond what is swallowed (server.tomcat.max-swallow-size, maxSwallowSize), or a handler that answers before it has read the body. No limit of connections or threads has a part in it."
	}
	return "Closing a connection with request bytes that nobody has read resets it: uploads beyond what is swallowed (server.tomcat.max-swallow-size, maxSwallowSize), or a handler that answers before it has read the body. Where no bytes were left: SO_LINGER, or an executor that rejects. No limit of connections or threads has a part in it."
}

// ResetSteps are the same as steps.
func ResetSteps(s *symptoms.Symptoms) (do []model.Step, not string) {
	if s.ResetMany() == 0 && ShortRequestTime(s) != "" && (s.OnlyClosedEarly() || s.Delta["TCPAbortOnClose"] > 0) {
		return append(moreTime(s), Action("If they send whole requests at once: see for how long the other end keeps an idle connection, and keep it for longer here ("+KeepAliveSetting().Name(s.Now)+")")), accepted
	}
	if s.OnlyClosedEarly() {
		return []model.Step{
			Action("See for how long the other end keeps an idle connection (nginx keepalive_timeout of the upstream, a balancer's idle timeout, the client pool's)"),
			Action(phrase.Sprintf("Keep them for longer than that here (%s%s), or shorten it there", KeepAliveSetting().Name(s.Now), IdleTimeout(s))),
		}, accepted
	}
	if s.OnlyAlerted() {
		return []model.Step{
			Action("See which alert it is, from a client's host: openssl s_client -connect HOST:PORT, with -tls1_2 or -tls1_3 as the clients ask; or -Djavax.net.debug=ssl:handshake of the server's JVM"),
			Action("Then let both have a version of TLS and a cipher in common: protocols and ciphers of the Connector (server.ssl.enabled-protocols, server.ssl.ciphers), or those of the clients"),
		}, accepted
	}
	if s.ClosesUnanswered() && s.TurnedOut() == 0 {
		return []model.Step{
			Action(phrase.Sprintf("Nothing, where these clients wait for no answer, as of PostgreSQL's CancelRequest; else see in its log why %s ends their connections", reading.ServerName(s.Now))),
		}, accepted
	}
	if !reading.IsTomcat(s.Now) {
		return []model.Step{
			Action(phrase.Sprintf("See in its log why %s ends them: a forwarder (docker-proxy, a proxy) does where nobody listens at the address that it passes them on to", reading.ServerName(s.Now))),
			Action("Then ask that address, from here and from where it is (in a container: a server that listens on 127.0.0.1 alone)"),
		}, accepted
	}
	if s.OnlyInAnswer() {
		return []model.Step{LingerStep()}, accepted
	}
	if s.ClosesUnanswered() {
		return closedUnansweredSteps(s), accepted
	}
	if s.Delta["TCPAbortOnClose"] == 0 {
		return []model.Step{Action("Look into the log for what closes connections: an executor that rejects, a filter, a shutdown")}, accepted
	}
	step := model.Step{Text: "Let Tomcat read the rest of a rejected upload, so that the client gets its answer; TCPAbortOnClose (nstat) then stands still", Setting: "maxSwallowSize", To: "-1"} // what is in force is not read
	if s.Now.Connector != nil && s.Now.Connector.Framework == "spring-boot" {
		step.Setting = "server.tomcat.max-swallow-size"
	}
	if s.ResetMany() == 0 && s.ClosedByEither() {
		return []model.Step{Action("Find out which end closes them, by the access log: responses that were not sent whole (clients that leave), or 413 and short answers to uploads (the server)"), step}, accepted
	}
	return []model.Step{step, Action("Or have clients ask first (Expect: 100-continue), and the handler read the body before it answers")}, accepted
}

// closedUnansweredSteps are what to look at where the server ends connections without an answer.
func closedUnansweredSteps(s *symptoms.Symptoms) (do []model.Step) {
	if ShortRequestTime(s) != "" {
		do = moreTime(s)
	}
	return append(do, Action("Look into the log for what ends connections before an answer: a timeout, an executor that rejects, a filter, a shutdown"))
}

// moreTime is a longer connectionTimeout.
func moreTime(s *symptoms.Symptoms) []model.Step {
	return []model.Step{ConnectionTimeoutSetting().ChangeTime(s, s.Now.Connector.ConnectionTimeout, "Give clients time to send a request, and the next part of it in an upload (a number without a unit is milliseconds)", usualTimeout)}
}

// accepted is what does not help them.
const accepted = "More threads or connections: these clients had been accepted."

// usualTimeout is that of the server.xml that Tomcat comes with.
const usualTimeout = 20 * time.Second
