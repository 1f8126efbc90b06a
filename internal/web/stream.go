package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxStreams is how many open pages are kept current.
	maxStreams = 64
	// maxSending is how long a browser may take to read an update.
	maxSending = 10 * time.Second
	// chartsEvery is how many updates apart charts and the lines of other listeners
	// are drawn anew: a column is five seconds.
	chartsEvery = columnOf
)

// update is what a browser is sent: the whole of it, or the parts that changed.
type update struct {
	Title    string            `json:"title"`
	Main     *string           `json:"main,omitempty"`
	Parts    map[string]string `json:"parts,omitempty"`
	Statuses map[string]string `json:"statuses,omitempty"` // of the cards, by element
}

// sent is what one browser shows.
type sent struct {
	layout string
	parts  map[string]string
	ticks  int
}

// stream sends the page's changes until the browser leaves or the agent ends.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d pages are open and updated: close one, or reload this one by hand", maxStreams), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back
	control := http.NewResponseController(w)
	shown := &sent{parts: make(map[string]string)}
	tick := time.NewTicker(s.options.Interval)
	defer tick.Stop()
	for {
		if err := s.send(w, control, shown, choiceOf(r.URL.Query())); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.stopped:
			return
		}
	}
}

func (s *Server) send(w http.ResponseWriter, control *http.ResponseController, shown *sent, c choice) error {
	u, err := s.changes(shown, c)
	if err != nil {
		return err
	}
	body, err := encode(u)
	if err != nil {
		return err
	}
	_ = control.SetWriteDeadline(time.Now().Add(maxSending))
	if _, err := fmt.Fprintf(w, "event: update\ndata: %s\n", body); err != nil {
		return err
	}
	return control.Flush()
}

// encode leaves "<" as it is: escaped it would double what is sent. The encoder
// ends with a line's end.
func encode(u *update) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(u)
	return b.Bytes(), err
}

// changes compares what the page is with what the browser shows.
func (s *Server) changes(shown *sent, c choice) (*update, error) {
	v := s.view(c)
	u := &update{Title: v.Title, Statuses: make(map[string]string)}
	parts, err := s.parts(v, shown.ticks%chartsEvery == 0)
	if err != nil {
		return nil, err
	}
	shown.ticks++
	layout := v.layout()
	if layout != shown.layout {
		whole, err := s.pages.draw("main", v)
		if err != nil {
			return nil, err
		}
		u.Main, shown.layout = &whole, layout
	}
	u.Parts = make(map[string]string)
	for id, html := range parts {
		if shown.parts[id] != html && (u.Main == nil || id == "counts" || id == "incidents") {
			u.Parts[id] = html
		}
		shown.parts[id] = html
	}
	for i := range v.Cards {
		u.Statuses[v.Cards[i].ID] = v.Cards[i].Status
	}
	return u, nil
}

// layout changes when parts come, go or move.
func (v *view) layout() string {
	out := fmt.Sprint(v.Notes, v.Missing)
	for i := range v.Cards {
		out += " " + v.Cards[i].ID
	}
	for i := range v.Rows {
		out += " -" + v.Rows[i].ID
	}
	return out
}

// parts are the pieces of the page that change on their own, by element.
func (s *Server) parts(v *view, withRest bool) (map[string]string, error) {
	out := make(map[string]string)
	var failed error
	draw := func(id, name string, data any) {
		html, err := s.pages.draw(name, data)
		if err != nil {
			failed = err
		}
		out[id] = html
	}
	draw("counts", "counts", v)
	draw("incidents", "incidents", v)
	for i := range v.Cards {
		c := &v.Cards[i]
		draw(c.ID+"-t", "text", c)
		draw(c.ID+"-f", "findings", c)
		if withRest {
			draw(c.ID+"-c", "charts", c)
		}
	}
	for i := range v.Rows {
		if withRest {
			draw(v.Rows[i].ID, "row", &v.Rows[i])
		}
	}
	return out, failed
}
