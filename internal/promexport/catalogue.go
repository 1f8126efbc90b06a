package promexport

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Doc describes a metric to people; the README's table is made of these.
type Doc struct {
	Name   string
	Type   string // gauge, counter or histogram
	Labels []string
	Help   string
}

// Metrics returns every metric the collector can export, in the order of the
// funnel. The Go and process collectors' metrics are not among them.
func Metrics() []Doc {
	c := newCatalogue()
	out := make([]Doc, len(c.all))
	for i, m := range c.all {
		out[i] = m.Doc
	}
	return out
}

// catalogue holds every metric by what it means.
type catalogue struct {
	all []*metric

	listener   listenerMetrics
	connector  connectorMetrics
	process    processMetrics
	downstream downstreamMetrics
	netns      netnsMetrics
	self       selfMetrics
	targetUp   *metric
	targetInfo *metric
	refused    *metric

	droppedByCause *metric
}

func newCatalogue() *catalogue {
	c := &catalogue{}
	c.targetUp = c.gauge("tcpdiag_target_up",
		"Whether something listens on an expected port (given by --port or the configuration file; with --all-namespaces only where something has listened on it since the agent started): 1 yes, 0 no.",
		"netns", "port")
	c.targetInfo = c.gauge("tcpdiag_target_info",
		"What the configuration file calls a port that is expected or watched: always 1. Has the file's labels, too; they are here and nowhere else; join on netns and port.",
		"netns", "port")
	c.refused = c.counter("tcpdiag_port_refused_clients_total",
		"Clients that met no listener on an expected port, or on one where a server was seen to listen within the last hour; absent where handshakes are not followed.",
		"netns", "port")
	c.droppedByCause = c.counter("tcpdiag_dropped_packets_total",
		"Handshake packets that the kernel dropped at any listener of the agent, by cause, listeners that are gone included: tcpdiag_listener_dropped_packets_total with a series a cause instead of dozens a listener.",
		"cause")
	c.listener = newListenerMetrics(c)
	c.connector = newConnectorMetrics(c)
	c.process = newProcessMetrics(c)
	c.downstream = newDownstreamMetrics(c)
	c.netns = newNetNSMetrics(c)
	c.self = newSelfMetrics(c)
	return c
}

func (c *catalogue) gauge(name, help string, labelNames ...string) *metric {
	return c.add(dto.MetricType_GAUGE, "gauge", name, help, labelNames)
}

func (c *catalogue) counter(name, help string, labelNames ...string) *metric {
	return c.add(dto.MetricType_COUNTER, "counter", name, help, labelNames)
}

func (c *catalogue) histogram(name, help string, labelNames ...string) *metric {
	return c.add(dto.MetricType_HISTOGRAM, "histogram", name, help, labelNames)
}

func (c *catalogue) add(kind dto.MetricType, typeName, name, help string, labelNames []string) *metric {
	m := &metric{
		Doc:   Doc{Name: name, Type: typeName, Labels: labelNames, Help: help},
		kind:  kind,
		index: len(c.all),
		desc:  prometheus.NewDesc(name, help, labelNames, nil),
	}
	c.all = append(c.all, m)
	return m
}

// countedFrom gives the counters that the agent keeps itself the time at which they
// were zero. Those of a namespace's kernel and of a process are older than the agent.
func (c *catalogue) countedFrom(started time.Time) {
	at := timestamppb.New(started)
	counters := []*metric{
		c.refused, c.droppedByCause, c.netns.unattributed,
		c.listener.fullSeconds, c.listener.dropped, c.listener.overflow, c.listener.synDropped, c.listener.abandoned, c.listener.queueResets, c.listener.outcomes, c.listener.turnedAway, c.listener.answered, c.listener.unanswered, c.listener.closed,
		c.self.missedTicks, c.self.failedSamples, c.self.incidents, c.self.lostFrames, c.self.writeErrors, c.self.refused, c.self.evicted,
	}
	for _, m := range counters {
		m.created = at
	}
}
