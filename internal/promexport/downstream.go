package promexport

import "github.com/tcpdiag/tcpdiag/internal/model"

type downstreamMetrics struct {
	connections *metric
	oldest      *metric
	pool        *metric
	workers     *metric
}

func newDownstreamMetrics(c *catalogue) downstreamMetrics {
	return downstreamMetrics{
		connections: c.gauge("tcpdiag_downstream_connections",
			"Outgoing connections of the process to a peer: in_flight (something was sent, and nothing has come back since), idle, connecting (no answer to the SYN), unknown. At most 20 peers a process; the rest is peer=\"other\".",
			"netns", "process", "peer", "state"),
		oldest: c.gauge("tcpdiag_downstream_oldest_in_flight_seconds",
			"How long the oldest request to a peer has been without an answer, or the oldest connection has tried to connect; absent where none is.",
			"netns", "process", "peer"),
		pool: c.gauge("tcpdiag_downstream_pool_size",
			"The bound that the application's configuration sets on its connections to a peer; absent where it names none.",
			"netns", "process", "peer"),
		workers: c.gauge("tcpdiag_downstream_waiting_threads",
			"Worker threads of the process that are in a call that waits for a peer. They are read while its threads are busy, where that is permitted; absent else.",
			"netns", "process", "peer"),
	}
}

// downstream exports the peers of a process.
func (c *Collector) downstream(e emitter, ls labels, d *model.Downstream) {
	if d == nil {
		return
	}
	for i := range d.Peers {
		c.peer(e, ls.with(label("peer", d.Peers[i].Address.String())), &d.Peers[i])
	}
	if d.Others != nil {
		c.peer(e, ls.with(label("peer", "other")), d.Others)
	}
}

func (c *Collector) peer(e emitter, ls labels, p *model.Peer) {
	m := &c.catalogue.downstream
	state := func(name string, n int) { e.value(m.connections, ls.with(label("state", name)), float64(n)) }
	state("in_flight", p.InFlight)
	state("idle", p.Connections-p.InFlight-p.Connecting-p.Unknown)
	if p.Connecting > 0 {
		state("connecting", p.Connecting)
	}
	if p.Unknown > 0 {
		state("unknown", p.Unknown)
	}
	if p.InFlight+p.Connecting > 0 {
		e.value(m.oldest, ls, max(p.Oldest, p.OldestConnect).Seconds())
	}
	if p.Workers != nil {
		e.value(m.workers, ls, float64(*p.Workers))
	}
	if p.Pool != nil {
		e.value(m.pool, ls, float64(p.Pool.Size.Value))
	}
}
