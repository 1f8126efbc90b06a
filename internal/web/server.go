// Package web is the agent's page: drawn on the server, complete without a
// script, and kept current by server-sent events where there is one. Nothing is
// loaded from elsewhere.
package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// policy lets the page load its own style and script and follow its stream.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// Options of the page.
type Options struct {
	Snapshot func() *model.Snapshot // what was published last; nil before the first
	Now      func() time.Time
	History  *incident.History
	// Incidents are the recordings; nil where there are none.
	Incidents Incidents
	Interval  time.Duration // between two updates, and two points of the charts
	Version   string
}

// Incidents are the recordings that are kept (incident.Recorder).
type Incidents interface {
	List() []recording.Summary // the latest first
	Open(id string) (io.ReadCloser, error)
}

// Server draws the page and keeps open pages current.
type Server struct {
	options Options
	pages   *pages
	stopped chan struct{}

	mu       sync.Mutex
	drawings map[choice]*drawing // of the pages that are open
}

// New draws what the options name.
func New(o Options) (*Server, error) {
	p, err := newPages()
	if err != nil {
		return nil, err
	}
	return &Server{
		options: o, pages: p,
		stopped:  make(chan struct{}),
		drawings: make(map[choice]*drawing),
	}, nil
}

// Run ends the streams when ctx is done.
func (s *Server) Run(ctx context.Context) error {
	<-ctx.Done()
	close(s.stopped)
	return nil
}

func (s *Server) view(c choice, snap *model.Snapshot) *view {
	v := newView(snap, s.options.History, c, s.options.Version, s.options.Now())
	if s.options.Incidents != nil {
		v.Incidents = pastIncidents(s.options.Incidents.List(), c)
	}
	return v
}

// Question is what a request for the page asks for, the same for all that get the same; "" where no
// listener is of its choice, of which there is no end.
func (s *Server) Question(r *http.Request, snap *model.Snapshot) string {
	c := choiceOf(r.URL.Query())
	if snap == nil || !c.all() && !slices.ContainsFunc(snap.Listeners, func(l model.Listener) bool { return c.includes(&l) }) {
		return ""
	}
	return fmt.Sprintf("page %q", c)
}

// Page serves the page itself.
func (s *Server) Page(w http.ResponseWriter, r *http.Request) {
	page, err := s.pages.draw("page", s.view(choiceOf(r.URL.Query()), s.options.Snapshot()))
	if err != nil {
		http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
		return
	}
	pageHeaders(w)
	_, _ = io.WriteString(w, page)
}

func pageHeaders(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cache-Control", "no-store")
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
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body)) // 304 where the browser has it
}
