package web

import (
	"context"
	"net/http"
	"path"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// policy lets the page load its own style and script and follow its stream.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// Options of the page.
type Options struct {
	Snapshot func() *model.Snapshot // what was published last; nil before the first
	Now      func() time.Time
	Interval time.Duration // between two updates, and two points of the charts
	Version  string
}

// Server draws the page and keeps open pages current.
type Server struct {
	options Options
	pages   *pages
	history *incident.History
	streams chan struct{}
	stopped chan struct{}
}

// New has no history yet; Run collects it.
func New(o Options) (*Server, error) {
	p, err := newPages()
	if err != nil {
		return nil, err
	}
	return &Server{
		options: o, pages: p, history: incident.NewHistory(),
		streams: make(chan struct{}, maxStreams), stopped: make(chan struct{}),
	}, nil
}

// Run keeps the history until ctx is done, and then ends the streams.
func (s *Server) Run(ctx context.Context) error {
	defer close(s.stopped)
	tick := time.NewTicker(s.options.Interval)
	defer tick.Stop()
	for {
		s.history.Observe(s.options.Snapshot())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Server) view(c choice) *view {
	return newView(s.options.Snapshot(), s.history, c, s.options.Version, s.options.Now())
}

// Page serves the page itself.
func (s *Server) Page(w http.ResponseWriter, r *http.Request) {
	page, err := s.pages.draw("page", s.view(choiceOf(r.URL.Query())))
	if err != nil {
		http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(page))
}

// Asset serves the style and the script.
func (s *Server) Asset(w http.ResponseWriter, r *http.Request) {
	types := map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}
	name := path.Base(r.URL.Path)
	body, err := assets.ReadFile("assets/" + name)
	if err != nil || types[name] == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[name])
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(body)
}

// Stream serves server-sent events: GET /api/v1/stream.
func (s *Server) Stream(w http.ResponseWriter, r *http.Request) { s.stream(w, r) }
