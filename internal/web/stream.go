package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// maxSending is how long a browser may take to read an update.
const maxSending = 10 * time.Second

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
}

// Stream serves server-sent events, the page's changes, until the browser leaves or the
// agent ends: GET /api/v1/stream. How many there are is the caller's to bound.
func (s *Server) Stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back
	control := http.NewResponseController(w)
	d := s.shared(choiceOf(r.URL.Query()))
	defer s.release(d)
	shown := new(sent)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case now := <-timer.C:
			if err := s.send(w, control, shown, d); err != nil {
				return
			}
			timer.Reset(s.untilNext(now))
		case <-r.Context().Done():
			return
		case <-s.stopped:
			return
		}
	}
}

// untilNext is the time to the next update: all pages have theirs at the same
// moment, for which is drawn once.
func (s *Server) untilNext(now time.Time) time.Duration {
	return time.Until(now.Truncate(s.options.Interval).Add(s.options.Interval))
}

func (s *Server) send(w http.ResponseWriter, control *http.ResponseController, shown *sent, d *drawing) error {
	u, err := s.changes(shown, d)
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
func (s *Server) changes(shown *sent, d *drawing) (*update, error) {
	at, err := s.now(d)
	if err != nil {
		return nil, err
	}
	u := &update{Title: at.view.Title, Statuses: at.statuses, Parts: make(map[string]string)}
	if at.layout != shown.layout {
		whole, err := s.pages.draw("main", at.view)
		if err != nil {
			return nil, err
		}
		u.Main, shown.layout = &whole, at.layout
	}
	for id, html := range at.parts {
		if shown.parts[id] != html && (u.Main == nil || id == "counts" || id == "clock" || id == "incidents") {
			u.Parts[id] = html
		}
	}
	shown.parts = at.parts
	return u, nil
}
