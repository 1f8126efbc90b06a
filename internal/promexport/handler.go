package promexport

import (
	"log/slog"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Build is what tcpdiag_build_info tells.
type Build struct {
	Version  string
	Revision string
}

// NewRegistry returns a registry of its own (not the library's default) with
// the snapshot's metrics, the build's, and the Go and process collectors,
// whose process_… metrics are those of tcpdiag itself.
func NewRegistry(source Source, b Build) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		NewCollector(source),
		buildInfo(b),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return reg
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

// Handler serves the registry as text, OpenMetrics or protobuf, as the scraper
// asks. What can be gathered is served even when something else cannot: an
// agent that is half blind is of more use than none. log hears what was lost.
func Handler(reg *prometheus.Registry, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		EnableOpenMetrics: true,
		ErrorHandling:     promhttp.ContinueOnError,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Registry:          reg,
	})
}
