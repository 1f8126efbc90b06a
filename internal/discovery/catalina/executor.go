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
