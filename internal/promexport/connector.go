package promexport

import (
	"math"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

type connectorMetrics struct {
	limit       *metric
	source      *metric
	poolThreads *metric
}

func newConnectorMetrics(c *catalogue) connectorMetrics {
	return connectorMetrics{
		limit: c.gauge("tcpdiag_connector_limit",
			"A limit of the connector as it is configured: max_connections (+Inf: no limit), accept_count, max_threads, min_spare_threads.",
			"listener", "netns", "limit"),
		source: c.gauge("tcpdiag_connector_limit_source_info",
			"Where a limit was found (default, file, env, argument, property, flag, kernel, actuator): always 1. flag: given to tcpdiag itself, by its flags or its configuration file.",
			"listener", "netns", "limit", "source"),
		poolThreads: c.gauge("tcpdiag_connector_pool_threads",
			"Worker threads alive, by their names.",
			"listener", "netns"),
	}
}

func (c *Collector) connectors(e emitter, ls labels, k *model.Connector) {
	if k == nil {
		return
	}
	c.setting(e, ls, "max_connections", k.MaxConnections)
	c.setting(e, ls, "accept_count", k.AcceptCount)
	c.setting(e, ls, "max_threads", k.MaxThreads)
	c.setting(e, ls, "min_spare_threads", k.MinSpareThreads)
	known(e, c.catalogue.connector.poolThreads, ls, k.PoolThreads)
}

func (c *Collector) setting(e emitter, ls labels, name string, s *model.Setting[int]) {
	if s == nil {
		return
	}
	value := float64(s.Value)
	if name == "max_connections" && s.Value < 0 { // Tomcat: -1 is no limit, and connections/limit must be 0, not negative
		value = math.Inf(1)
	}
	limit := label("limit", name)
	e.value(c.catalogue.connector.limit, ls.with(limit), value)
	if s.Kind != "" {
		e.value(c.catalogue.connector.source, ls.with(limit, label("source", string(s.Kind))), 1)
	}
}
