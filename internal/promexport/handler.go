package promexport

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves the registry as text, OpenMetrics or protobuf (with the
// native histogram), with gzip or not, as the scraper asks. What can be
// collected is served even when something else cannot: an agent that is half
// blind is of more use than none. log hears what was lost, and so does
// promhttp_metric_handler_errors_total.
func Handler(r *Registry, log *slog.Logger) http.Handler {
	return sharing(compressing(promhttp.HandlerFor(r, promhttp.HandlerOpts{
		DisableCompression: true, // see compressor
		EnableOpenMetrics:  true,
		ErrorHandling:      promhttp.ContinueOnError,
		ErrorLog:           slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Registry:           r.library,
	})), r.collector.source)
}
