package catalina

import "github.com/tcpdiag/tcpdiag/internal/model"

// threads reads what runs the requests.
func (r *reader) threads(e *element, c *Connector, executors map[string]*executor) {
	name := r.text(e, "executor")
	if x := executors[name.text]; name.given && x != nil {
		x.apply(r, c)
		return
	}
	if name.given {
		r.server.Unavailable = append(r.server.Unavailable, model.Unavailable{
			What: "Executor " + name.raw,
			Why:  "no <Executor> of that name stands in front of the connector, which therefore has threads of its own",
		})
	}
	if r.virtual(e, c) {
		return
	}
	byDefault := Defaults(r.server.Version, c.Scheme, c.Endpoint)
	c.MaxThreads = pick(r, r.int(e, "maxThreads"), "maxThreads", byDefault.MaxThreads, plain, nil)
	c.MinSpareThreads = CapSpare(
		pick(r, r.int(e, "minSpareThreads"), "minSpareThreads", byDefault.MinSpareThreads, plain, nil), c.MaxThreads)
	if c.Endpoint == "bio" && !r.int(e, "maxConnections").given {
		c.followThreads()
	}
	if queue := r.int(e, "maxQueueSize"); queue.given && r.server.Version.has(connectorQueueSize()...) {
		c.MaxQueue = pick(r, queue, "maxQueueSize", unboundedQueue, plain, nil)
	}
}

// followThreads: as many connections as threads (JIoEndpoint.bind).
func (c *Connector) followThreads() {
	if c.MaxThreads == nil {
		c.MaxConnections = nil
		return
	}
	c.MaxConnections.Value = c.MaxThreads.Value
	if c.MaxThreads.Uncertain {
		c.MaxConnections.Note, c.MaxConnections.Uncertain = c.MaxThreads.Note, true
	}
}

func (r *reader) virtual(e *element, c *Connector) bool {
	if !r.server.Version.has(virtualThreads()...) {
		c.VirtualThreads = &model.Setting[bool]{Kind: model.SourceDefault, Source: defaultSource(r.server.Version)}
		return false
	}
	c.VirtualThreads = pick(r, r.bool(e, "useVirtualThreads"), "useVirtualThreads", false, func(n int) bool { return n == 1 }, nil)
	if c.VirtualThreads == nil || !c.VirtualThreads.Value {
		return false
	}
	c.VirtualThreads.Note = NoThreadLimit
	return true
}
