package web

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// drawing is the page of one choice as it is kept current, shared by all that have
// it open: a snapshot is drawn once.
type drawing struct {
	choice choice
	users  int // under the server's lock

	mu     sync.Mutex
	latest *drawn
	of     *model.Snapshot
	column int64 // in which charts and lines were drawn
}

// drawn is a drawing at one moment. It is not changed.
type drawn struct {
	view     *view
	layout   string
	parts    map[string]string // by element
	statuses map[string]string // of the cards, by element
}

// shared is the drawing of a choice; release gives it back.
func (s *Server) shared(c choice) *drawing {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.drawings[c]
	if d == nil {
		d = &drawing{choice: c}
		s.drawings[c] = d
	}
	d.users++
	return d
}

func (s *Server) release(d *drawing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.users--; d.users == 0 {
		delete(s.drawings, d.choice)
	}
}

// now is the drawing of what was published last.
func (s *Server) now(d *drawing) (*drawn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	snap := s.options.Snapshot()
	if d.latest != nil && snap == d.of {
		return d.latest, nil
	}
	v := s.view(d.choice)
	next := &drawn{view: v, layout: v.layout(), statuses: make(map[string]string)}
	var column int64
	if snap != nil {
		column = snap.Time.Unix() / pastOf(d.choice.minutes).width
	}
	whole := d.latest == nil || column != d.column || next.layout != d.latest.layout
	parts, err := s.parts(v, whole)
	if err != nil {
		return nil, err
	}
	if !whole { // what is not drawn every second is as it was
		all := maps.Clone(d.latest.parts)
		maps.Copy(all, parts)
		parts = all
	}
	next.parts = parts
	for i := range v.Cards {
		next.statuses[v.Cards[i].ID] = v.Cards[i].Status
	}
	d.latest, d.of, d.column = next, snap, column
	return next, nil
}

// layout changes when parts come, go or move.
func (v *view) layout() string {
	var b strings.Builder
	_, _ = fmt.Fprint(&b, v.Notes, v.Missing)
	for i := range v.Cards {
		b.WriteString(" " + v.Cards[i].ID)
	}
	for i := range v.Rows {
		b.WriteString(" -" + v.Rows[i].ID)
	}
	return b.String()
}

// parts are the pieces of the page that change on their own, by element. Charts
// and the lines of other listeners are drawn again with a new column of the charts.
func (s *Server) parts(v *view, whole bool) (map[string]string, error) {
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
	draw("clock", "clock", v)
	draw("incidents", "incidents", v)
	for i := range v.Cards {
		c := &v.Cards[i]
		draw(c.ID+"-h", "band", c)
		draw(c.ID+"-s", "answer", c)
		draw(c.ID+"-g", "flow", c)
		draw(c.ID+"-f", "rest", c)
		if whole {
			draw(c.ID+"-c", "charts", c)
		}
	}
	for i := range v.Rows {
		if whole {
			draw(v.Rows[i].ID, "row", &v.Rows[i])
		}
	}
	return out, failed
}
