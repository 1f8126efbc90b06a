package promexport

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
)

// Build is what tcpdiag_build_info reports.
type Build struct {
	Version  string
	Revision string
}

// Registry is a prometheus.Gatherer of everything the agent exports.
//
// The library's own registry hashes, checks and sorts every series at every
// scrape, which with 200 listeners takes longer than all the rest. The
// collector's series are distinct and well-formed by construction (the tests
// put it through the library's pedantic registry), so it is collected directly;
// build info and the Go and process collectors go the usual way.
type Registry struct {
	collector *Collector
	families  []*dto.MetricFamily // without metrics, one for each of the catalogue
	library   *prometheus.Registry
}

// NewRegistry returns a registry of its own (not the library's default) with
// the snapshot's metrics, the build's, and the Go and process collectors,
// whose process_… metrics are those of tcpdiag itself. started is when the agent
// began to count.
func NewRegistry(source Source, started time.Time, b Build) *Registry {
	r := &Registry{collector: NewCollector(source, started), library: prometheus.NewRegistry()}
	for _, m := range r.collector.catalogue.all {
		r.families = append(r.families, &dto.MetricFamily{Name: &m.Name, Help: &m.Help, Type: m.kind.Enum()})
	}
	r.library.MustRegister(
		buildInfo(b),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

func buildInfo(b Build) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tcpdiag_build_info",
		Help: "The program: always 1.",
		ConstLabels: prometheus.Labels{
			"version": b.Version, "revision": b.Revision,
			"goversion": runtime.Version(), "goos": runtime.GOOS, "goarch": runtime.GOARCH,
		},
	}, func() float64 { return 1 })
}

// Gather implements prometheus.Gatherer. With an error it still returns what
// could be collected.
func (r *Registry) Gather() ([]*dto.MetricFamily, error) {
	out, err := r.library.Gather()
	if err != nil {
		err = fmt.Errorf("promexport: %w", err)
	}
	out = append(out, r.snapshot()...)
	slices.SortFunc(out, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out, err
}

// snapshot collects the collector's series into families.
func (r *Registry) snapshot() []*dto.MetricFamily {
	metrics := make([][]*dto.Metric, len(r.families))
	r.collector.emit(func(s series) {
		metrics[s.metric.index] = append(metrics[s.metric.index], s.message())
	})
	out := make([]*dto.MetricFamily, 0, len(r.families))
	for i, f := range r.families {
		if len(metrics[i]) > 0 {
			out = append(out, &dto.MetricFamily{Name: f.Name, Help: f.Help, Type: f.Type, Metric: metrics[i]})
		}
	}
	return out
}
