package web

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// foldedEvery is how often the evidence of each card is drawn: it is folded, and half of what is sent.
const foldedEvery = 3 * time.Second

// drawing is the page of one choice as it is kept current, shared by all that have
// it open: a snapshot is drawn once.
type drawing struct {
	choice choice
	users  int // under the server's lock

	mu     sync.Mutex
	latest *drawn
	of     *model.Snapshot
	column int64     // in which charts and lines were drawn
	folded time.Time // of the snapshot whose folded parts were drawn last
}

// drawn is a drawing at one moment. It is not changed.
type drawn struct {
	view     *view
	layout   string
	main     *string           // the whole; nil where nobody has needed it
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

// now is the drawing of what was published last, with the whole of it where the layout is
// another one than a browser has. It is drawn in a turn; where there is none, it is the one before.
func (s *Server) now(d *drawing, layout string, turn func() (leave func(), ok bool)) (*drawn, error) {
	latest, fresh := s.latest(d, layout)
	if fresh {
		return latest, nil
	}
	leave, ok := turn()
	if !ok && latest == nil {
		return nil, errBusy
	}
	if !ok {
		return latest, nil
	}
	defer leave()
	return s.drawAgain(d, layout)
}

// latest is what was drawn last, and whether it is what a browser needs that has this layout.
func (s *Server) latest(d *drawing, layout string) (*drawn, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.latest, d.latest != nil && s.options.Snapshot() == d.of && !d.latest.lacks(layout)
}

// lacks says that a browser with this layout needs the whole, and it is not drawn.
func (at *drawn) lacks(layout string) bool { return at.layout != layout && at.main == nil }

// drawAgain draws what another has not drawn meanwhile.
func (s *Server) drawAgain(d *drawing, layout string) (*drawn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if snap := s.options.Snapshot(); d.latest == nil || snap != d.of {
		if err := s.draw(d, snap); err != nil {
			return nil, err
		}
	}
	if d.latest.lacks(layout) {
		main, err := s.pages.draw("main", d.latest.view)
		if err != nil {
			return nil, err
		}
		whole := *d.latest
		whole.main = &main
		d.latest = &whole
	}
	return d.latest, nil
}

func (s *Server) draw(d *drawing, snap *model.Snapshot) error {
	v := s.view(d.choice)
	next := &drawn{view: v, layout: v.layout(), statuses: make(map[string]string)}
	var column int64
	if snap != nil {
		column = snap.Time.Unix() / pastOf(d.choice.minutes).width
	}
	whole := d.latest == nil || column != d.column || next.layout != d.latest.layout
	folded := whole || snap == nil || snap.Time.Sub(d.folded) >= foldedEvery
	if folded && snap != nil {
		d.folded = snap.Time
	}
	parts, err := s.parts(v, whole, folded)
	if err != nil {
		return err
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
	return nil
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
// and the lines of other listeners are drawn again with a new column of the charts, what is folded
// when it is foldedEvery old.
func (s *Server) parts(v *view, whole, folded bool) (map[string]string, error) {
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
		if folded {
			draw(c.ID+"-f", "rest", c)
		}
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
