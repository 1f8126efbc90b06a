package sampler

import (
	"log/slog"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/tomcat"
)

// Options say what to watch and how often.
type Options struct {
	Ports []uint16 // expected ports; their absence is a finding
	PIDs  []int    // only the listeners of these processes, in their namespaces
	All   bool     // every listener, not only Tomcat's

	// Inside are processes whose network namespaces are looked at; without any
	// it is those of PIDs, or else the caller's own.
	Inside []int

	Limits Overrides

	SampleInterval time.Duration // between two looks at the queues
	ScanInterval   time.Duration // between two looks at everything; stretched when a scan is dear
	Window         time.Duration // what losses and peaks span
	MaxListeners   int           // listeners beyond it are counted, not watched

	Actuator string // base URL of an Actuator to ask, "" for none

	Scanned func(cost time.Duration) // told the processor time of each scan; may be nil

	Thresholds diagnosis.Thresholds
	Log        *slog.Logger
	Now        func() time.Time
}

// Overrides are limits given by hand; they beat what is discovered.
type Overrides struct {
	MaxConnections, AcceptCount, MaxThreads *int
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

func (o *Options) inside() []int {
	switch {
	case len(o.Inside) > 0:
		return o.Inside
	case len(o.PIDs) > 0:
		return o.PIDs
	}
	return []int{0}
}

// Sources are what the sampler asks besides the kernel's sockets.
type Sources struct {
	Mount  string // of the proc file system
	Proc   hostproc.FS
	Owners *owner.Finder
	Tomcat *tomcat.Discoverer
}

// apply lets the limits given by hand beat the discovered ones.
func (o Overrides) apply(c *backlog.Connector) *backlog.Connector {
	if o == (Overrides{}) {
		return c
	}
	out := backlog.Connector{}
	if c != nil {
		out = *c
	}
	set := func(dst **backlog.Setting[int], v *int, flag string) {
		if v != nil {
			*dst = &backlog.Setting[int]{Value: *v, Kind: backlog.SourceFlag, Source: "flag " + flag}
		}
	}
	set(&out.MaxConnections, o.MaxConnections, "--max-connections")
	set(&out.AcceptCount, o.AcceptCount, "--accept-count")
	set(&out.MaxThreads, o.MaxThreads, "--max-threads")
	return &out
}
