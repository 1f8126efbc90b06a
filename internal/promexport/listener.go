package promexport

import (
	"math"
	"strconv"

	dto "github.com/prometheus/client_model/go"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What bounds the number of series.
const (
	// MaxSeriesPerListener is the most series one listener can have, its
	// connector's, its process's and its target's included; each bucket of a classic
	// histogram counts, as Prometheus counts.
	MaxSeriesPerListener = 136
	// MaxRetained is the number of closed addresses whose counters are
	// exported: a server that listens on a new port every second must not fill
	// Prometheus.
	MaxRetained = 100

	maxLimits = 8 // series of limit_used_ratio
)

type listenerMetrics struct {
	info           *metric
	length         *metric
	capacity       *metric
	peak           *metric
	fill           *metric
	fullSeconds    *metric
	oldestWait     *metric
	synBacklog     *metric
	connections    *metric
	reset          *metric
	connectionsAge *metric
	samplingError  *metric
	dropped        *metric
	overflow       *metric
	synDropped     *metric
	abandoned      *metric
	queueResets    *metric
	status         *metric
	verdict        *metric
	clients        *metric
	inside         *metric
	usedCapacity   *metric
	outcomes       *metric
	turnedAway     *metric
	fromProxies    *metric
	unanswered     *metric
	closed         *metric
	answered       *metric
	delays         *metric
	firstResponse  *metric
	usedRatio      *metric
	fullest        *metric
	members        *metric
}

func newListenerMetrics(c *catalogue) listenerMetrics {
	return listenerMetrics{
		info: c.gauge("tcpdiag_listener_info",
			"Who listens: always 1. pid, pod and container are here and nowhere else; join on listener and netns. container is the name that Kubernetes has for it, elsewhere the id.",
			"listener", "netns", "port", "pid", "process", "server", "framework", "protocol", "namespace", "pod", "container", "container_id", "pod_uid"),
		length: c.gauge("tcpdiag_listener_accept_queue_length",
			"Connections whose handshake is complete and which the application has not accepted (Recv-Q of the LISTEN socket).",
			"listener", "netns"),
		capacity: c.gauge("tcpdiag_listener_accept_queue_capacity",
			"Connections the accept queue holds: the backlog in force, min(acceptCount, somaxconn at listen()), plus 1.",
			"listener", "netns"),
		peak: c.gauge("tcpdiag_listener_accept_queue_peak",
			"Longest the accept queue has been in the last 60 s, of all samples; scrape at least that often.",
			"listener", "netns"),
		fill: c.histogram("tcpdiag_listener_accept_queue_fill_ratio",
			"Accept queue's length divided by its capacity, over all samples; 1 is full. Native and classic.",
			"listener", "netns"),
		fullSeconds: c.counter("tcpdiag_listener_accept_queue_full_seconds_total",
			"Time the accept queue was full.",
			"listener", "netns"),
		oldestWait: c.gauge("tcpdiag_listener_accept_queue_oldest_wait_seconds",
			"How long the oldest connection in the accept queue has waited; absent when none waits.",
			"listener", "netns"),
		synBacklog: c.gauge("tcpdiag_listener_syn_backlog_length",
			"Half-open connections (SYN_RECV); absent while not all sockets can be counted.",
			"listener", "netns"),
		connections: c.gauge("tcpdiag_listener_connections",
			"Accepted connections by phase: waiting, in_service, sending, idle, client_closed, streaming, unclassified. The sum is all that are accepted; absent while not all sockets can be counted.",
			"listener", "netns", "phase"),
		connectionsAge: c.gauge("tcpdiag_listener_connections_age_seconds",
			"Time since the connections were read: at once in trouble, otherwise as often as there is CPU time for it.",
			"listener", "netns"),
		samplingError: c.gauge("tcpdiag_listener_connections_sampling_error",
			"How far each phase's number may be from the truth, in 99 of 100 readings, where a random part of thousands of connections was read while they were calm; 0 where each was counted.",
			"listener", "netns"),
		reset: c.gauge("tcpdiag_listener_reset_connections",
			"Slots of the server that seem held by connections that the client has reset: descriptors of its process without a socket; absent where they cannot be counted.",
			"listener", "netns"),
		dropped: c.counter("tcpdiag_listener_dropped_packets_total",
			"Handshake packets (retransmissions included, so not clients) that the kernel dropped, by the limit that did it: syn, ack, or unknown where the counters do not show it.",
			"listener", "netns", "cause", "packet"),
		overflow: c.counter("tcpdiag_listener_overflow_packets_total",
			"Handshake packets dropped at a full accept queue: tcpdiag_listener_dropped_packets_total without cause and packet, and without syn_backlog. One series instead of dozens, for many listeners.",
			"listener", "netns"),
		synDropped: c.counter("tcpdiag_listener_syn_backlog_packets_total",
			"Handshake packets dropped at a full SYN backlog: cause syn_backlog of tcpdiag_listener_dropped_packets_total, in one series.",
			"listener", "netns"),
		abandoned: c.counter("tcpdiag_listener_abandoned_requests_total",
			"Requests whose client closed while they waited or were in service; seen at scans, which miss some.",
			"listener", "netns"),
		queueResets: c.counter("tcpdiag_listener_queue_resets_total",
			"Connections that stood in the accept queue when the listener closed; the kernel reset them.",
			"listener", "netns"),
		status: c.gauge("tcpdiag_listener_status",
			"The verdict: 1 for the status the listener has (ok, warning, saturated, losing, down), 0 for the others.",
			"listener", "netns", "status"),
		verdict: c.gauge("tcpdiag_listener_verdict_info",
			"Why the listener has its status: always 1. cause is none while no limit is reached.",
			"listener", "netns", "status", "cause"),
		clients: c.gauge("tcpdiag_listener_client_capacity",
			"Clients that can be inside at once: maxConnections plus the accept queue's capacity; absent while maxConnections is not known.",
			"listener", "netns"),
		inside: c.gauge("tcpdiag_listener_clients_inside",
			"Clients that are inside or queued: the sum of tcpdiag_listener_connections, tcpdiag_listener_reset_connections and tcpdiag_listener_accept_queue_length; absent while not all sockets can be counted.",
			"listener", "netns"),
		usedCapacity: c.gauge("tcpdiag_listener_capacity_used_ratio",
			"tcpdiag_listener_clients_inside divided by tcpdiag_listener_client_capacity; 1 is full. Absent where one of them is.",
			"listener", "netns"),
		outcomes: c.counter("tcpdiag_listener_clients_total",
			"Clients by how their attempt to connect ended (connected, delayed, gave_up, stalled, reset, half_open, undecided); absent where handshakes are not followed. Refused ones met no listener: tcpdiag_port_refused_clients_total.",
			"listener", "netns", "outcome"),
		turnedAway: c.counter("tcpdiag_listener_clients_turned_away_total",
			"Clients that got no answer: gave_up, stalled and reset of tcpdiag_listener_clients_total, and the unanswered where they are known; absent where handshakes are not followed. Refused ones met no listener: tcpdiag_port_refused_clients_total.",
			"listener", "netns"),
		fromProxies: c.gauge("tcpdiag_listener_clients_from_proxies",
			"1 where four of five clients of the last one to two minutes, of 100 or more, came from three addresses at most: a load balancer's or a proxy's connections, not people; 0 elsewhere. Absent where handshakes are not followed.",
			"listener", "netns"),
		answered: c.counter("tcpdiag_listener_clients_answered_total",
			"Clients that were let in, sent something and received something: with those turned away all that came for an answer and have ended. Absent where the server's first byte is no answer (TLS, HTTP/2), where its protocol is not known and nobody has had a byte, and where handshakes are not followed.",
			"listener", "netns"),
		unanswered: c.counter("tcpdiag_listener_clients_unanswered_total",
			"Clients that were let in, sent something and received nothing until they left: read timeouts inside; those alone that the server sent away where its protocol is not known and nobody has had a byte; absent where the server's first byte is no answer (TLS, HTTP/2) and where handshakes are not followed.",
			"listener", "netns"),
		closed: c.counter("tcpdiag_listener_clients_closed_total",
			"Of tcpdiag_listener_clients_unanswered_total, those whose connection the server has ended; absent before the first of them.",
			"listener", "netns"),
		delays: c.histogram("tcpdiag_listener_connect_delay_seconds",
			"How long the clients of outcome delayed waited to be let in; absent before the first of them.",
			"listener", "netns"),
		firstResponse: c.histogram("tcpdiag_listener_first_response_seconds",
			"From a client's first SYN to the first byte of its answer, queues included: of a sixteenth of the clients, by their ports, and of none while a busy server is calm (5,000 segments a second, nothing dropped). Absent before the first, and where the server's first byte is no answer (TLS, HTTP/2).",
			"listener", "netns"),
		usedRatio: c.gauge("tcpdiag_listener_limit_used_ratio",
			"How much of a limit is used; 1 is full. Absent where it is not known.",
			"listener", "netns", "limit"),
		fullest: c.gauge("tcpdiag_listener_fullest_limit_ratio",
			"The largest tcpdiag_listener_limit_used_ratio of the listener, and 1 at most.",
			"listener", "netns"),
		members: c.gauge("tcpdiag_listener_members",
			"Sockets that share the address (SO_REUSEPORT); 1 is alone.",
			"listener", "netns"),
	}
}

func (c *Collector) info(e emitter, a address, l *model.Listener, names processNames) {
	var p model.Process
	var k model.Connector
	pid := ""
	if l.Process != nil {
		p, pid = *l.Process, strconv.Itoa(l.Process.PID)
	}
	if l.Connector != nil {
		k = *l.Connector
	}
	pod := model.Pod{Container: p.Container} // without Kubernetes its id
	if l.Pod != nil {
		pod = *l.Pod
	}
	e.value(c.catalogue.listener.info, a.labels().with(
		portLabel(l.Port), label("pid", pid), label("process", names.of(l)),
		label("server", k.Server), label("framework", k.Framework), label("protocol", k.Protocol),
		label("namespace", pod.Namespace), label("pod", pod.Name), label("container", pod.Container),
		label("container_id", p.Container), label("pod_uid", p.PodUID)), 1)
}

// gauges are what goes away with the listener.
func (c *Collector) gauges(e emitter, ls labels, l *model.Listener) {
	m := &c.catalogue.listener
	if q := l.AcceptQueue; q != nil {
		e.value(m.length, ls, float64(q.Length))
		e.value(m.capacity, ls, float64(q.Capacity()))
		known(e, m.peak, ls, q.Peak)
		if q.OldestWait != nil {
			e.value(m.oldestWait, ls, q.OldestWait.Seconds())
		}
	}
	if l.SynBacklog != nil {
		e.value(m.synBacklog, ls, float64(l.SynBacklog.Length))
	}
	if l.Connections != nil && !l.Connections.Partial { // a series cannot say that it is too low
		for p, n := range l.Connections.Phases {
			e.value(m.connections, ls.with(c.fixed.phases[p]), float64(n))
		}
		known(e, m.reset, ls, l.Connections.Reset)
		if !l.Connections.At.IsZero() {
			e.value(m.connectionsAge, ls, l.Connections.Age.Seconds())
		}
		e.value(m.samplingError, ls, float64(l.Connections.Error))
	}
	if inside := clientsInside(l); inside != nil {
		e.value(m.inside, ls, float64(*inside))
		if room := l.Capacity(); room != nil && *room > 0 {
			e.value(m.usedCapacity, ls, float64(*inside)/float64(*room))
		}
	}
	if l.Losses != nil && l.Losses.Clients != nil {
		e.value(m.fromProxies, ls, truth(len(l.Losses.Clients.Proxies) > 0))
	}
	for s := range model.NumStatuses {
		e.value(m.status, ls.with(c.fixed.statuses[s]), truth(l.Verdict.Status == s))
	}
	e.value(m.verdict, ls.with(c.fixed.statuses[l.Verdict.Status], label("cause", verdictCause(&l.Verdict))), 1)
	known(e, m.clients, ls, l.Capacity())
	if l.Members > 0 {
		e.value(m.members, ls, float64(l.Members))
	}
	c.limits(e, ls, l.Limits)
}

// clientsInside are the clients that take a slot of the server or of its accept queue.
func clientsInside(l *model.Listener) *int {
	if l.AcceptQueue == nil || l.Connections == nil || l.Connections.Partial {
		return nil
	}
	sum := l.AcceptQueue.Length
	for _, n := range l.Connections.Phases {
		sum += n
	}
	if l.Connections.Reset != nil {
		sum += *l.Connections.Reset
	}
	return &sum
}

func (c *Collector) limits(e emitter, ls labels, limits []model.Limit) {
	seen := make(map[string]bool, maxLimits)
	fullest := 0.0
	for _, l := range limits {
		if seen[l.Name] || len(seen) == maxLimits || math.IsNaN(l.Ratio) || math.IsInf(l.Ratio, 0) {
			continue
		}
		seen[l.Name] = true
		fullest = max(fullest, l.Ratio)
		e.value(c.catalogue.listener.usedRatio, ls.with(label("limit", l.Name)), l.Ratio)
	}
	if len(seen) > 0 {
		e.value(c.catalogue.listener.fullest, ls, min(fullest, 1))
	}
}

// totals are what survives the listener's restart.
func (c *Collector) totals(e emitter, ls labels, t *model.Totals, can causes) {
	m := &c.catalogue.listener
	e.value(m.fullSeconds, ls, t.FullSeconds)
	e.value(m.abandoned, ls, float64(t.AbandonedRequests))
	e.value(m.queueResets, ls, float64(t.QueueResets))
	e.histogram(m.fill, ls, fillHistogram(&t.Fill))
	c.dropped(e, ls, t.Dropped, can)
	overflow, synBacklog := dropSums(t.Dropped)
	e.value(m.overflow, ls, float64(overflow))
	e.value(m.synDropped, ls, float64(synBacklog))
	c.outcomes(e, ls, t.Clients)
}

func (c *Collector) outcomes(e emitter, ls labels, t *model.ClientTotals) {
	if t == nil {
		return
	}
	for o := range model.NumClientOutcomes {
		if o != model.ClientRefused {
			e.value(c.catalogue.listener.outcomes, ls.with(c.fixed.outcomes[o]), float64(t.Outcomes[o]))
		}
	}
	e.value(c.catalogue.listener.turnedAway, ls, float64(t.TurnedAway()))
	if t.Answers.Known {
		e.value(c.catalogue.listener.answered, ls, float64(t.Answers.Answered))
	}
	if t.Answers.Known || t.Answers.Least {
		e.value(c.catalogue.listener.unanswered, ls, float64(t.Answers.Unanswered))
		if t.Answers.Closed > 0 {
			e.value(c.catalogue.listener.closed, ls, float64(t.Answers.Closed))
		}
	}
	if t.Delays.Count > 0 { // a dozen series that most listeners never need; the counter above is there from the start
		e.histogram(c.catalogue.listener.delays, ls, boundedHistogram(t.Delays.Bounds[:], t.Delays.Buckets[:], t.Delays.Count, t.Delays.Sum))
	}
	if r := &t.Responses; t.Answers.Known && r.Count > 0 {
		e.histogram(c.catalogue.listener.firstResponse, ls, boundedHistogram(r.Bounds[:], r.Buckets[:], r.Count, r.Sum))
	}
}

// verdictCause has a word for no cause: an empty label is none at all.
func verdictCause(v *model.Verdict) string {
	if v.Cause == model.CauseNone {
		return "none"
	}
	return string(v.Cause)
}

func netnsLabel(id uint64) *dto.LabelPair { return label("netns", strconv.FormatUint(id, 10)) }

func portLabel(port uint16) *dto.LabelPair { return label("port", strconv.Itoa(int(port))) }
