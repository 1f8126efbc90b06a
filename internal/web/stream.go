package web

import (
	"bytes"
	"encoding/json"
	"errors"
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

// Turn is asked before something is drawn for a request, and what it gives is called
// afterwards; false where too much is being drawn.
type Turn func(*http.Request) (leave func(), ok bool)

// errBusy: there was no turn to draw the page for the first time.
var errBusy = errors.New("web: too many pages are being drawn")

// Stream serves server-sent events, the page's changes, until the browser leaves or the
// agent ends: GET /api/v1/stream. How many there are is the caller's to bound, and
// how many are drawn at once.
func (s *Server) Stream(turn Turn) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d := s.shared(choiceOf(r.URL.Query()))
		defer s.release(d)
		o := &openPage{server: s, drawing: d, turn: func() (func(), bool) { return turn(r) }}
		first, err := o.next()
		if err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many pages are being drawn", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back
		if send(w, first) == nil {
			o.follow(w, r)
		}
	}
}

// openPage is a page that one browser has open.
type openPage struct {
	server  *Server
	drawing *drawing
	turn    func() (leave func(), ok bool)
	shown   *drawn // nil at first
}

// follow sends the changes until the browser leaves or the agent ends.
func (o *openPage) follow(w http.ResponseWriter, r *http.Request) {
	timer := time.NewTimer(o.server.untilNext(time.Now()))
	defer timer.Stop()
	for {
		select {
		case now := <-timer.C:
			e, err := o.next()
			if err != nil || send(w, e) != nil {
				return
			}
			timer.Reset(o.server.untilNext(now))
		case <-r.Context().Done():
			return
		case <-o.server.stopped:
			return
		}
	}
}

// untilNext is the time to the next update: all pages have theirs at the same
// moment, for which is drawn once.
func (s *Server) untilNext(now time.Time) time.Duration {
	return time.Until(now.Truncate(s.options.Interval).Add(s.options.Interval))
}

func send(w http.ResponseWriter, e event) error {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(maxSending))
	if _, err := w.Write(e); err != nil {
		return err
	}
	return control.Flush()
}

// event is an update as it is sent.
type event []byte

// encode leaves "<" as it is: escaped it would double what is sent. The encoder
// ends with a line's end.
func encode(u *update) (event, error) {
	b := bytes.NewBufferString("event: update\ndata: ")
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(u); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// next is what the browser is sent to show what is. A page that shows the drawing before the latest
// gets the same bytes as all others that do.
func (o *openPage) next() (event, error) {
	at, err := o.server.now(o.drawing, o.shown, o.turn)
	if err != nil {
		return nil, err
	}
	if at.lacks(o.shown) { // there was no turn: with the next update
		return encode(&update{Title: at.view.Title})
	}
	before := o.shown
	o.shown = at
	if before != nil && before.number+1 == at.number {
		return at.event, nil
	}
	return encode(at.since(before))
}
