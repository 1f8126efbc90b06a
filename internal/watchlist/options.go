package watchlist

import (
	"cmp"
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/kubelet"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
)

// Options say which listeners are watched, and how often they are listed.
type Options struct {
	Ports []uint16 // expected ports; their absence is a finding
	PIDs  []int    // only the listeners of these processes, in their namespaces
	All   bool     // every listener, not only Tomcat's
	// Remember has each port on which a server was found expected from then on.
	Remember bool

	// Targets have settings of their own. Their ports are expected, too.
	Targets []Target
	Labels  map[string]string // of everything that is watched; a target's beat them

	// AllNamespaces reads every network namespace that has a process, too: for
	// Tomcats, or for what Ports and All say. A port that is no named process's
	// is then expected where something has listened on it, as long as that
	// namespace lives; a one-shot that finds it nowhere calls it down.
	AllNamespaces bool

	// KubeletLogs is where the kubelet's folders pods and containers are, "" to read none.
	KubeletLogs string

	// Inside are processes whose network namespaces are read; without any it is
	// those of PIDs, or else the caller's own.
	Inside []int

	Limits       Overrides // a target's beat them
	MaxListeners int       // listeners beyond it are counted, not watched
	Actuator     string    // base URL of an Actuator to ask, "" for none

	ScanInterval time.Duration // between two lists of the listeners, and two snapshots
	Window       time.Duration // what losses and peaks span
	Now          func() time.Time
}

// Sources are what a Lister asks.
type Sources struct {
	Mount     string // of the proc file system
	Proc      hostproc.FS
	Owners    *owner.Finder
	Discovery *discovery.Discoverer

	// Pod is that of tcpdiag itself; the zero value knows none.
	Pod kubelet.Self

	// Open opens the namespace of a process, 0 for the caller's own; nil for
	// namespace.Open.
	Open OpenFunc
}

// Selection is what the options name.
func (o *Options) Selection() Selection {
	return Select(o.Ports, o.PIDs, o.All, o.Targets)
}

// Actuators are whom to ask, the targets' own behind the one for all. That one
// is asked for its own port's process and for those of the ports that were
// asked for: it may answer on a port that nobody watches.
func (o *Options) Actuators() (out []discovery.Actuator) {
	if o.Actuator != "" {
		out = append(out, discovery.Actuator{URL: o.Actuator})
		for _, port := range o.Ports {
			out = append(out, discovery.Actuator{URL: o.Actuator, Port: port})
		}
	}
	for _, t := range o.Targets {
		if t.Actuator == "" {
			continue
		}
		ports := t.Ports
		if len(ports) == 0 {
			ports = []uint16{0}
		}
		for _, port := range ports {
			out = append(out, discovery.Actuator{URL: t.Actuator, Port: port, PID: t.PID})
		}
	}
	return out
}

// Target is what a configuration file says of ports of one process, of ports of
// any process, or of all ports of one process.
type Target struct {
	Ports    []uint16 // none: all on which PID listens
	PID      int      // 0: any process of the namespaces that are read
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

// Apply lets the limits given by hand beat the discovered ones. The largest maxConnections there is, is none.
func (o Overrides) Apply(c *model.Connector) *model.Connector {
	if o == (Overrides{}) && (c == nil || !unlimited(c.MaxConnections)) {
		return c
	}
	out := model.Connector{}
	if c != nil {
		out = *c
	}
	out.MaxConnections = cmp.Or(o.MaxConnections, out.MaxConnections)
	if unlimited(out.MaxConnections) {
		none := *out.MaxConnections
		none.Value = -1
		out.MaxConnections = &none
	}
	out.AcceptCount = cmp.Or(o.AcceptCount, out.AcceptCount)
	out.MaxThreads = cmp.Or(o.MaxThreads, out.MaxThreads)
	return &out
}

// unlimited: what people write who want no limit, and what the connectors of some servers have.
func unlimited(s *model.Setting[int]) bool { return s != nil && s.Value >= math.MaxInt32 }

// ByHand is a limit that somebody gave tcpdiag, nil for none. source is where:
// "flag --max-threads", "tcpdiag.yml line 7". Its kind is not that of a file,
// which would say that the server's own configuration was read.
func ByHand(value *int, source string) *model.Setting[int] {
	if value == nil {
		return nil
	}
	return &model.Setting[int]{Value: *value, Kind: model.SourceFlag, Source: source}
}
