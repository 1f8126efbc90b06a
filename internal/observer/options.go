package observer

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
)

// Options say what to watch and how often.
type Options struct {
	Ports []uint16 // expected ports; their absence is a finding
	PIDs  []int    // only the listeners of these processes, in their namespaces
	All   bool     // every listener, not only Tomcat's

	// Targets have settings of their own. Their ports are expected, too.
	Targets []Target
	Labels  map[string]string // of everything that is watched; a target's beat them

	// AllNamespaces looks into every network namespace that has a process, too:
	// for Tomcats, or for what Ports and All say. A port that is no named
	// process's is then expected where something has listened on it, as long as
	// that namespace lives; a one-shot look that finds it nowhere calls it down.
	AllNamespaces bool

	// Inside are processes whose network namespaces are looked at; without any
	// it is those of PIDs, or else the caller's own.
	Inside []int

	Limits Overrides // a target's beat them

	SampleInterval time.Duration // between two looks at the queues
	ScanInterval   time.Duration // between two looks at everything; stretched when a scan is dear
	Window         time.Duration // what losses and peaks span
	MaxListeners   int           // listeners beyond it are counted, not watched

	Actuator string // base URL of an Actuator to ask, "" for none

	Thresholds diagnosis.Thresholds
	Log        *slog.Logger
	Now        func() time.Time
}

// Target is what a configuration file says of ports of one process, of ports of
// any process, or of all ports of one process.
type Target struct {
	Ports    []uint16 // none: all on which PID listens
	PID      int      // 0: any process of the namespaces that are looked at
	Labels   map[string]string
	Limits   Overrides
	Actuator string // base URL of the Actuator to ask, "" for none
}

// Overrides are limits given by hand; they beat what is discovered.
type Overrides struct {
	MaxConnections, AcceptCount, MaxThreads *model.Setting[int]
}

// Or fills in from other what o does not say.
func (o Overrides) Or(other Overrides) Overrides {
	return Overrides{
		MaxConnections: cmp.Or(o.MaxConnections, other.MaxConnections),
		AcceptCount:    cmp.Or(o.AcceptCount, other.AcceptCount),
		MaxThreads:     cmp.Or(o.MaxThreads, other.MaxThreads),
	}
}

// ByHand is a limit that somebody told tcpdiag, nil for none. source is where:
// "flag --max-threads", "tcpdiag.yml line 7". Its kind is not that of a file,
// which would say that the server's own configuration was read.
func ByHand(value *int, source string) *model.Setting[int] {
	if value == nil {
		return nil
	}
	return &model.Setting[int]{Value: *value, Kind: model.SourceFlag, Source: source}
}

// Defaults are the options of an agent that was told nothing.
func Defaults() Options {
	return Options{
		SampleInterval: 10 * time.Millisecond,
		ScanInterval:   time.Second,
		Window:         time.Minute,
		MaxListeners:   100,
		Thresholds:     diagnosis.DefaultThresholds(),
		Log:            slog.New(slog.DiscardHandler),
		Now:            time.Now,
	}
}

// Sources are what the sampler asks besides the kernel's sockets.
type Sources struct {
	Mount  string // of the proc file system
	Proc   hostproc.FS
	Owners *owner.Finder
	Tomcat *discovery.Discoverer
}

// apply lets the limits given by hand beat the discovered ones.
func (o Overrides) apply(c *model.Connector) *model.Connector {
	if o == (Overrides{}) {
		return c
	}
	out := model.Connector{}
	if c != nil {
		out = *c
	}
	out.MaxConnections = cmp.Or(o.MaxConnections, out.MaxConnections)
	out.AcceptCount = cmp.Or(o.AcceptCount, out.AcceptCount)
	out.MaxThreads = cmp.Or(o.MaxThreads, out.MaxThreads)
	return &out
}
