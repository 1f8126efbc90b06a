package observer

import (
	"log/slog"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/target"
)

// Options say what to watch and how often.
type Options struct {
	Ports []uint16 // expected ports; their absence is a finding
	PIDs  []int    // only the listeners of these processes, in their namespaces
	All   bool     // every listener, not only Tomcat's

	// Targets have settings of their own. Their ports are expected, too.
	Targets []target.Target
	Labels  map[string]string // of everything that is watched; a target's beat them

	// AllNamespaces reads every network namespace that has a process, too: for
	// Tomcats, or for what Ports and All say. A port that is no named process's
	// is then expected where something has listened on it, as long as that
	// namespace lives; a one-shot that finds it nowhere calls it down.
	AllNamespaces bool

	// Inside are processes whose network namespaces are read; without any it is
	// those of PIDs, or else the caller's own.
	Inside []int

	Limits target.Overrides // a target's beat them

	SampleInterval time.Duration // between two samples of the accept queues
	ScanInterval   time.Duration // between two snapshots, and two lists of the listeners
	Window         time.Duration // what losses and peaks span
	MaxListeners   int           // listeners beyond it are counted, not watched

	Actuator string // base URL of an Actuator to ask, "" for none

	// CPUTime is what the whole program has used so far: where it is known, all of
	// it counts against the clocks' share of a core, and else their own.
	CPUTime func() time.Duration

	Thresholds diagnosis.Thresholds
	Log        *slog.Logger
	Now        func() time.Time
}

// Defaults are the options of an agent without any flags.
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

// Sources are what the observer asks besides the kernel's sockets.
type Sources struct {
	Mount  string // of the proc file system
	Proc   hostproc.FS
	Owners *owner.Finder
	Tomcat *discovery.Discoverer

	// Open opens the namespace of a process, 0 for the caller's own; nil for
	// namespace.Open.
	Open OpenFunc
	// Evidence opens a reader of a listener's process; nil for reader.Open.
	Evidence OpenEvidence
}

// openJVM opens the performance data that the examinations have found.
func (s *Sources) openJVM() OpenJVM {
	if s.Tomcat == nil {
		return func(hostproc.ProcessKey) (*hsperf.File, error) { return nil, discovery.ErrUnexamined }
	}
	return s.Tomcat.JVM
}

// selection is what the options name.
func (o *Options) selection() target.Selection {
	return target.Select(o.Ports, o.PIDs, o.All, o.Targets)
}

// actuators are whom to ask, the targets' own behind the one for all. That one
// is asked for its own port's process and for those of the ports that were
// asked for: it may answer on a port that nobody watches.
func (o *Options) actuators() (out []discovery.Actuator) {
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
