package promexport

import (
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// sharedFor bounds how old the numbers of the process itself may be in a shared answer. All
	// else is always of the latest snapshot.
	sharedFor = time.Second
	// maxShared is how many answers are kept: one for each format, with gzip or not.
	maxShared = 8
	// A larger answer is made for each scrape.
	maxSharedSize = 256 << 10
)

// shared gives all scrapes of one snapshot the same answer, so that many scrapers
// cost little more than one.
type shared struct {
	next   http.Handler
	source Source

	mu      sync.Mutex // held while an answer is made, never while it is sent
	answers map[string]cached
}

// cached is an answer that is not changed any more.
type cached struct {
	*answer
	of   weak.Pointer[model.Snapshot] // which is not kept for it
	made time.Time
}

func sharing(next http.Handler, source Source) *shared {
	return &shared{next: next, source: source, answers: make(map[string]cached)}
}

// ServeHTTP implements http.Handler.
func (s *shared) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format := string(expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)) // as promhttp does
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		format += " gzip"
	}
	snap := s.source()
	if snap == nil || r.URL.Query().Has("name[]") {
		s.next.ServeHTTP(w, r)
		return
	}
	a := s.answer(format, weak.Make(snap), r)
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body.Bytes())
}

// answer is one that was made of the same snapshot, or a new one.
func (s *shared) answer(format string, of weak.Pointer[model.Snapshot], r *http.Request) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.answers[format]; ok && k.of == of && time.Since(k.made) < sharedFor {
		return k.answer
	}
	a := &answer{header: make(http.Header), code: http.StatusOK}
	s.next.ServeHTTP(a, r)
	if len(s.answers) == maxShared {
		maps.DeleteFunc(s.answers, func(_ string, k cached) bool { return k.of != of || time.Since(k.made) >= sharedFor })
	}
	if _, is := s.answers[format]; (is || len(s.answers) < maxShared) && a.code == http.StatusOK && a.body.Len() <= maxSharedSize {
		s.answers[format] = cached{a, of, time.Now()}
	}
	return a
}

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
