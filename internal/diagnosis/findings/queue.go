package findings

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/droppoints"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// lastingQueue says that clients wait in a queue that is not full, in front of a
// server that seems to have room: what is configured is then not what is in force,
// or nobody accepts.
func lastingQueue(s *symptoms.Symptoms, v model.Verdict, add adder) {
	unexplained := v.Cause == model.CauseNone && (v.Status == model.StatusOK || v.Status == model.StatusWarning)
	if !unexplained && !besideThreads(s, v) || !s.QueueBeforeRoom() {
		return
	}
	n, _ := reading.SlotsInUse(s.Now)
	add("queue_stands", model.SeverityWarning,
		phrase.Capital(phrase.Sprintf("%s, although only %d of %d connections%s are taken.", words.Queue(s), n,
			s.Now.Connector.MaxConnections.Value, words.SourceOf(s.Now.Connector.MaxConnections))),
		"Either the limit in force is lower (set by code, or over JMX while it runs: compare connectionCount and maxConnections of its ThreadPool MBean), or the connector is paused, or its acceptor thread is stuck (jstack) or gets no CPU.")
}

// besideThreads: busy threads are what is named, which keep nobody from accepting, but
// for a connector whose workers accept.
func besideThreads(s *symptoms.Symptoms, v model.Verdict) bool {
	if v.Status != model.StatusSaturated || reading.AcceptsWithWorkers(s.Now) {
		return false
	}
	switch v.Cause {
	case model.CauseMaxThreads, model.CauseExecutorQueue, model.CauseDownstream, model.CauseConnectionPool:
		return true
	}
	return false
}

// limitBesideThreads says that clients wait in the accept queue while threads are all
// that is known to be used up: maxConnections may be reached as well.
func limitBesideThreads(s *symptoms.Symptoms, v model.Verdict, add adder) {
	if !besideThreads(s, v) || reading.ConnectionLimit(s.Now) != reading.LimitUnknown || !s.Both(s.QueueStands) {
		return
	}
	add("limits_unknown", model.SeverityWarning,
		phrase.Capital(words.Queue(s))+": whether maxConnections is reached as well is unknown, as that limit is not known.", advice.Unknown(s))
}

// unacknowledged says that clients acknowledge nothing that is sent to them.
func unacknowledged(s *symptoms.Symptoms, add adder) {
	if !s.Unacknowledged() {
		return
	}
	add("unacknowledged", model.SeverityWarning, phrase.Capital(words.Unacknowledged(s))+".",
		"Their hosts or networks are gone, or packets of full size do not reach them (a tunnel's or VPN's smaller MTU with ICMP filtered: compare ping -M do -s 1472, set net.ipv4.tcp_mtu_probing=1, or clamp the MSS). The kernel keeps such a connection for some 15 minutes (net.ipv4.tcp_retries2), and Tomcat its slot as long: have the application give up on streams whose client does not answer. More threads or connections do not bring them back.")
}

// segmentsRepeated says that segments are sent again, as a fact: whose they are is not known.
func segmentsRepeated(s *symptoms.Symptoms, v model.Verdict, add adder) {
	if v.Cause == model.CauseLossyNetwork || !s.RepeatsMany() {
		return
	}
	add("segments_repeated", model.SeverityInfo,
		phrase.Capital(words.Repeated(s))+words.InInterval(s)+", by all sockets of this network namespace; below 1 % is usual.",
		phrase.Sprintf("See whose they are: ss -tino shows retrans of each connection, those of this port with sport = :%v. A network that loses packets delays answers, and ends some.", s.Now.Port))
}

// leftInside says that clients closed before they had their whole answers.
func leftInside(s *symptoms.Symptoms, add adder) {
	if !s.LeftInside() {
		return
	}
	add("clients_left", model.SeverityWarning, phrase.Capital(words.LeftInside(s))+".",
		"Their timeout is shorter than their requests take. Find what the handlers wait for (--thread-dump as its user and group, or jstack PID), and bound that below the clients' timeout. Asynchronous requests need a timeout of their own: the server does not see that their clients have closed. Long polls that clients end by themselves, and begin again, look the same: have the server answer them before the clients' timeout, or what it sends to those that have left is lost. More threads or connections do not help.")
}

// unheard says that something takes what connected clients send.
func unheard(s *symptoms.Symptoms, add adder) {
	if s.Unheard() == 0 {
		return
	}
	rules := ""
	for _, p := range droppoints.Rules(s, s.Unheard()) {
		rules += ": " + p.What
	}
	add("unheard_clients", model.SeverityWarning, phrase.Capital(words.Unheard(s))+rules+".",
		"A rule of this network namespace does, as one for what is of no connection that is tracked (ct state invalid): connection tracking may have forgotten connections while they were idle. Look at its rules; let nf_conntrack_tcp_timeout_established be longer than idle connections are kept, or end these before ("+advice.KeepAliveSetting().Name(s.Now)+").")
}

// tlsEnded says that clients end their TLS handshakes.
func tlsEnded(s *symptoms.Symptoms, add adder) {
	if !s.TLSFails() {
		return
	}
	advice := "It is expired, for another name, self-signed, of an authority that they do not know, or sent without its intermediate certificates: openssl s_client -connect NAME:PORT -servername NAME -verify_return_error -verify_hostname NAME from a client's host says which. Or they do not take the version of TLS that the server chose. More threads or connections do not help."
	if s.OnPlainPort() {
		advice = "They ask by https:// for what is served by http://, or a balancer has TLS towards its backends: change either, or give the connector TLS. More threads or connections do not help."
	}
	add("tls_ended", model.SeverityWarning, phrase.Capital(words.TLSEnded(s))+".", advice)
}

// forgotten says that something in between no longer knows connections.
func forgotten(s *symptoms.Symptoms, add adder) {
	if !s.Forgotten() {
		return
	}
	rules := ""
	for _, p := range droppoints.Rules(s, uint64(reading.Forgotten(s.Now))) {
		rules += "; here, " + p.What
	}
	add("forgotten_connections", model.SeverityWarning, phrase.Capital(words.Forgotten(s))+rules+".",
		"A firewall, NAT or load balancer, while they were idle; or hosts that share these addresses are gone. A client's next request on one has no answer, and does not reach this host. End idle connections before: "+advice.KeepAliveSetting().Name(s.Now)+", or the idle timeout of the clients' pools, below the shortest idle timeout in between. More threads or connections do not help.")
}

// blockedPoller says that the thread which reads for all others does something else.
func blockedPoller(s *symptoms.Symptoms, add adder) {
	if !s.Both(reading.PollerAway) || !s.Both(reading.UnreadAny) {
		return
	}
	add("poller_blocked", model.SeverityWarning,
		"The poller thread, which hands requests to the others, waits for something itself, as a worker does: meanwhile no other request is read, and no timeout ends a connection.",
		"Look at the executor: one that runs what it cannot take in the thread that brings it (CallerRunsPolicy) has the poller serve requests. Let it queue or reject them instead. --thread-dump as its user and group, or jstack PID, shows what the poller does.")
}

// pollerStands may be any of the three.
const pollerStands = "The poller thread, which hands them to the others, stands: at a lock, suspended by a debugger, or with the whole JVM at a safepoint"

// lastingRequests says that requests wait in front of threads that seem free, or of a server of which no more is known.
func lastingRequests(s *symptoms.Symptoms, v model.Verdict, add adder) {
	if v.Cause != model.CauseNone || !s.RequestsStand() {
		return
	}
	free := ""
	c := s.Now.Connector
	switch busy, _ := reading.BusyThreads(s.Now); {
	case s.ThreadsFree():
		free = phrase.Sprintf(", although %d of the pool's %s seem to have none", *c.PoolThreads-busy, phrase.Count(*c.PoolThreads, "thread"))
	case c != nil && c.PoolThreads != nil && !s.AllHaveOne():
		free = phrase.Sprintf(", although not all of the pool's %s seem to have one", phrase.Count(*c.PoolThreads, "thread"))
	}
	if s.Both(reading.PollerBlocked) && !s.Either(reading.PollerAway) {
		free += ". " + pollerStands
		if s.NothingAccepted() > 0 && s.Now.Acceptor == model.AcceptorAtLimit {
			free += ", and so does the acceptor: " + words.NothingAccepted(s)
		}
	}
	advice := "Ask the JVM what its threads do (--thread-dump as its user and group, or jstack PID). Either fewer threads serve this port than it seems (a limit or an executor set by code, a thread that could not be started), or they get no CPU, or the poller thread is stuck."
	switch {
	case reading.IsTomcat(s.Now):
	case reading.OtherJVM(s.Now):
		advice = "Ask the JVM what its threads do (--thread-dump as its user and group, or jstack PID): those that read have other requests, wait for something, or are none, as where a pool is smaller than what the server takes of it for itself, or a handler blocks the event loop."
	default:
		advice = "See what " + reading.ServerName(s.Now) + " is busy with: it takes connections, and reads nothing of these."
	}
	add("requests_stand", model.SeverityWarning, phrase.Capital(words.UnreadPhrase(s))+free+".", advice)
}
