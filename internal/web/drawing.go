package web

import (
	"fmt"
	"maps"
	"slices"
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
	number   uint64 // of the drawings of its choice
	view     *view
	layout   string
	main     *string           // the whole; nil where nobody has needed it
	parts    map[string]string // by element
	statuses map[string]string // of the cards, by element
	event    event             // what a page is sent that shows the one before
}

// since is what a page is sent that shows another drawing, or nothing.
func (at *drawn) since(before *drawn) *update {
	u := &update{Title: at.view.Title, Statuses: at.statuses, Parts: make(map[string]string)}
	var shown map[string]string
	if before != nil {
		shown = before.parts
	}
	if before == nil || before.layout != at.layout {
		u.Main = at.main
	}
	for id, html := range at.parts {
		if shown[id] != html && (u.Main == nil || slices.Contains(outsideMain(), id)) {
			u.Parts[id] = html
		}
	}
	return u
}

// outsideMain are the parts that do not come with the whole.
func outsideMain() []string { return []string{"counts", "clock", "incidents"} }

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

// now is the drawing of what was published last, with the whole of it where a page shows
// another layout. It is drawn in a turn; where there is none, it is the one before.
func (s *Server) now(d *drawing, shown *drawn, turn func() (leave func(), ok bool)) (*drawn, error) {
	latest, fresh := s.latest(d, shown)
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
	return s.drawAgain(d, shown)
}

// latest is what was drawn last, and whether it is what a page needs that shows another.
func (s *Server) latest(d *drawing, shown *drawn) (*drawn, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.latest, d.latest != nil && s.options.Snapshot() == d.of && !d.latest.lacks(shown)
}

// lacks says that a page needs the whole, since it shows another layout, and it is not drawn.
func (at *drawn) lacks(shown *drawn) bool {
	return at.main == nil && (shown == nil || shown.layout != at.layout)
}

// drawAgain draws what another has not drawn meanwhile.
func (s *Server) drawAgain(d *drawing, shown *drawn) (*drawn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if snap := s.options.Snapshot(); d.latest == nil || snap != d.of {
		if err := s.draw(d, snap); err != nil {
			return nil, err
		}
	}
	if d.latest.lacks(shown) {
		whole := *d.latest
		if err := s.drawMain(&whole); err != nil {
			return nil, err
		}
		d.latest = &whole
	}
	return d.latest, nil
}

func (s *Server) drawMain(at *drawn) error {
	main, err := s.pages.draw("main", at.view)
	at.main = &main
	return err
}

func (s *Server) draw(d *drawing, snap *model.Snapshot) error {
	v := s.view(d.choice, snap)
	before := d.latest
	next := &drawn{view: v, layout: v.layout(), statuses: make(map[string]string)}
	var column int64
	if snap != nil {
		column = snap.Time.Unix() / pastOf(d.choice.minutes).width
	}
	whole := before == nil || column != d.column || next.layout != before.layout
	folded := whole || snap == nil || snap.Time.Sub(d.folded) >= foldedEvery
	if folded && snap != nil {
		d.folded = snap.Time
	}
	parts, err := s.parts(v, before, whole, folded)
	if err != nil {
		return err
	}
	if !whole { // what is not drawn every second is as it was
		all := maps.Clone(before.parts)
		maps.Copy(all, parts)
		parts = all
	}
	next.parts = parts
	for i := range v.Cards {
		next.statuses[v.Cards[i].ID] = v.Cards[i].Status
	}
	if before != nil {
		if err := s.follow(next, before); err != nil {
			return err
		}
	}
	d.latest, d.of, d.column = next, snap, column
	return nil
}

// follow adds what pages are sent that show the drawing before.
func (s *Server) follow(next, before *drawn) (err error) {
	next.number = before.number + 1
	if next.lacks(before) {
		if err := s.drawMain(next); err != nil {
			return err
		}
	}
	next.event, err = encode(next.since(before))
	return err
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
// when it is foldedEvery old, and the rest of a card that is as it was before not at all.
func (s *Server) parts(v *view, before *drawn, whole, folded bool) (map[string]string, error) {
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
		if whole || i >= len(before.view.Cards) || !c.same(&before.view.Cards[i]) {
			draw(c.ID+"-h", "band", c)
			draw(c.ID+"-s", "answer", c)
			draw(c.ID+"-g", "flow", c)
		}
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
