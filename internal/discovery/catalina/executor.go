package catalina

import (
	"cmp"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// executor is a shared <Executor>.
type executor struct {
	name       string
	shown      string // the name as it is written
	namePrefix string
	virtual    *setting // of the line of StandardVirtualThreadExecutor
	custom     string   // a class whose limits cannot be known
	maxThreads *model.Setting[int]
	minSpare   *model.Setting[int]
	maxQueue   *model.Setting[int]
}

func (r *reader) executor(e *element) *executor {
	name := r.text(e, "name")
	x := &executor{name: name.text, shown: name.raw, namePrefix: "tomcat-exec-"}
	if prefix := r.text(e, "namePrefix"); prefix.given {
		x.namePrefix = prefix.text
	}
	switch class := r.text(e, "className"); class.text {
	case "", "org.apache.catalina.core.StandardThreadExecutor":
	case "org.apache.catalina.core.StandardVirtualThreadExecutor":
		x.virtual = &setting{given: true, ok: true, value: 1, line: e.line}
		return x
	default:
		x.custom = class.raw
		return x
	}
	threads, spare := ExecutorDefaults()
	x.maxThreads = pick(r, r.int(e, "maxThreads"), "maxThreads", threads, plain, nil)
	x.minSpare = pick(r, r.int(e, "minSpareThreads"), "minSpareThreads", spare, plain, nil)
	if queue := r.int(e, "maxQueueSize"); queue.given {
		x.maxQueue = pick(r, queue, "maxQueueSize", unboundedQueue, plain, nil)
	}
	for _, limit := range []*model.Setting[int]{x.maxThreads, x.minSpare, x.maxQueue} {
		if limit != nil {
			limit.Source += ", Executor " + cmp.Or(x.shown, "without a name")
		}
	}
	return x
}

// unboundedQueue is maxQueueSize's default, Integer.MAX_VALUE.
const unboundedQueue = 1<<31 - 1

// apply gives a connector the executor's limits; its own are then never read
// (AbstractEndpoint.getMaxThreads is -1 with an external executor).
func (x *executor) apply(r *reader, c *Connector) {
	c.Executor, c.NamePrefix = x.shown, x.namePrefix
	c.MaxThreads, c.MinSpareThreads, c.MaxQueue = x.maxThreads, x.minSpare, x.maxQueue
	virtual := x.virtual != nil
	c.VirtualThreads = &model.Setting[bool]{Value: virtual, Kind: model.SourceDefault, Source: defaultSource(r.server.Version)}
	if virtual {
		kind, source := x.virtual.source(r.server.File)
		c.VirtualThreads = &model.Setting[bool]{Value: true, Kind: kind, Source: source + ", Executor " + x.shown, Note: NoThreadLimit}
	}
	if x.custom == "" {
		return
	}
	c.VirtualThreads = nil
	r.server.Unavailable = append(r.server.Unavailable, model.Unavailable{
		What: "limits of Executor " + x.shown,
		Why:  "its class " + x.custom + " is not one of Tomcat's",
		How:  "give them by hand: --max-threads",
	})
}

// NoThreadLimit is the note on a connector that uses virtual threads.
const NoThreadLimit = "a virtual thread for each request: maxThreads has no effect"

// CapSpare is minSpareThreads as it is in force: never above maxThreads
// (AbstractEndpoint.getMinSpareThreads).
func CapSpare(spare, most *model.Setting[int]) *model.Setting[int] {
	if spare == nil || most == nil || spare.Value <= most.Value {
		return spare
	}
	capped := *spare
	capped.Value = most.Value
	capped.Note = join(capped.Note, "held down by maxThreads")
	capped.Uncertain = spare.Uncertain || most.Uncertain
	return &capped
}

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
